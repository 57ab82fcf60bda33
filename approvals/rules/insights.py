"""What the figures of past questions suggest, in words, with the place where something can be done about it."""

from dataclasses import dataclass
from typing import Final

from base import figures
from catalog.rules.kinds import Kind

RANGES: Final = (7, 30, 90)  # days
ENOUGH: Final = 20  # answers that make a habit
DAYS: Final = 3  # on which they were given
ALONE: Final = 7  # days that make one of a single person
HASTY: Final = 4.0  # seconds in which nobody reads a card
HARMLESS: Final = frozenset({Kind.READ, Kind.WRITE})  # what people may let run unasked, however often they approved it
MANY_UNKNOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Answers:
    """How the questions of one kind were closed. Seconds are from asking to answering; None where none was answered."""

    asked: int
    approved: int
    edited: int
    denied: int
    stopped: int
    expired: int
    withdrawn: int
    median: float | None
    p90: float | None

    @property
    def answered(self) -> int:
        """By a person."""
        return self.approved + self.edited + self.denied + self.stopped


@dataclass(frozen=True, slots=True)
class Habit:
    """Of what kinds the calls of a function were, and by how many people, on how many days, they were decided."""

    kinds: frozenset[str]
    people: int
    days: int

    @property
    def settled(self) -> bool:
        """Whether it is more than one person's morning."""
        return self.days >= (DAYS if self.people > 1 else ALONE)


@dataclass(frozen=True, slots=True)
class Unknown:
    """How unknown outcomes of one tool and cause ended."""

    tool: str
    why: str
    asked: int
    happened: int
    again: int
    stopped: int
    still_open: int


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing worth doing: in a sentence, and where: allow, refuse, policy, notices, agents or tool.

    `about` is the function, `tool.function`, or the tool it is about.
    """

    says: str
    where: str
    about: str = ""


def of_function(name: str, seen: Answers, habit: Habit) -> Advice | None:
    """What the questions about one function, asked by one rule, suggest. A single sitting suggests nothing, and that
    all were approved only where it destroys nothing and people took the time to read."""
    decided = seen.answered
    if not habit.settled:
        return None
    if decided >= ENOUGH and seen.approved == decided:
        if not habit.kinds <= HARMLESS or seen.median is None or seen.median < HASTY:
            return None
        people = "one person" if habit.people == 1 else f"{habit.people:,} people"
        says = (
            f"{name} was asked {seen.asked:,} times and approved {seen.approved:,}, by {people} on {habit.days:,} days"
        )
        return Advice(f"{says}: consider to allow it.", "allow", name)
    if decided >= ENOUGH and seen.denied + seen.stopped >= 0.9 * decided:
        says = f"{name} was denied in {seen.denied + seen.stopped:,} of {decided:,}: consider to refuse it."
        return Advice(says, "refuse", name)
    if decided >= ENOUGH and seen.edited >= 0.3 * decided:
        return Advice(
            f"{name} was edited in {seen.edited:,} of {decided:,}: its agent could be told what people change.",
            "agents",
            name,
        )
    return None


def of_all(seen: Answers) -> list[Advice]:
    """What all questions together suggest."""
    found = []
    if seen.asked >= ENOUGH and seen.expired >= 0.2 * seen.asked:
        found.append(
            Advice(f"{seen.expired:,} of {seen.asked:,} questions expired: nobody heard of them in time.", "notices")
        )
    if seen.answered >= ENOUGH and seen.median is not None and seen.median < HASTY:
        found.append(
            Advice(
                f"Half of all answers came within {figures.duration(seen.median)}: too quick to have read them."
                " Asking less often, and only where it matters, is safer.",
                "policy",
            )
        )
    return found


def of_unknown(seen: Unknown) -> Advice | None:
    """What the unknown outcomes of one tool and cause suggest."""
    if seen.asked < MANY_UNKNOWN:
        return None
    return Advice(
        f"{seen.tool} left {seen.asked:,} outcomes unknown, all alike ({seen.why.rstrip('.')}): see whether its"
        " functions can honour the key, which lets the studio try again by itself.",
        "tool",
        seen.tool,
    )
