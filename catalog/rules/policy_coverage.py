"""What a policy comes to for the functions that there are: who waits and why, what no rule names, what names nothing.

Whether a rule is about a function is decided by what is known of the function alone: kind, tool, name and reach. What
only a call has (its agent, starter, arguments, counts) makes a rule one that holds *sometimes*.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from catalog.rules import policy_words as words
from catalog.rules.conditions import Is
from catalog.rules.kinds import Kind
from catalog.rules.policy import DEFAULTS, Allow, Facts, Policy, Refuse, Verdict, judge, narrower
from catalog.rules.policy_rules import Effect, Rule

SLIPS: Final = frozenset(Is) - {Is.DIFFERS, Is.PRESENT, Is.ABSENT}


@dataclass(frozen=True, slots=True)
class Entry:
    """One function as far as a rule can name it."""

    tool: str
    function: str
    kind: Kind
    open_world: bool

    @property
    def label(self) -> str:
        """`tool.function`, which names it everywhere."""
        return f"{self.tool}.{self.function}"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What becomes of the calls of one function: of every call, and by which rules some of them fare otherwise."""

    entry: Entry
    verdict: Verdict
    sometimes: tuple[Rule, ...] = ()
    named: bool = True  # some rule picks it by tool, name, kind or reach

    @property
    def waits(self) -> bool:
        """Whether each of its calls waits for a person, unless a rule of `sometimes` lets it run."""
        return not isinstance(self.verdict, Allow | Refuse)

    @property
    def may_wait(self) -> bool:
        """Whether some of its calls wait for a person."""
        return self.waits or any(_effect(rule) is Effect.ASK for rule in self.sometimes)


@dataclass(frozen=True, slots=True)
class Reach:
    """How many functions a rule is about; `idle` says why when it is about none, or over."""

    functions: int
    idle: str = ""
    slips: tuple[str, ...] = ()  # arguments that a call may leave out and then is not held by the rule


@dataclass(frozen=True, slots=True)
class Coverage:
    """A policy beside the functions there are: an outlook each, and the reach of each rule, both in their order."""

    outlooks: tuple[Outlook, ...]
    reaches: tuple[Reach, ...]

    @property
    def unnamed(self) -> tuple[Outlook, ...]:
        """The functions that no rule picks: the defaults of the studio decide, or a rule that is about every call."""
        return tuple(outlook for outlook in self.outlooks if not outlook.named)


def cover(policy: Policy, entries: Sequence[Entry], agents: Collection[str], at: datetime) -> Coverage:
    """Lay the policy over the functions and agents that there are at this time."""
    live = [rule for rule in policy.rules if rule.until is None or rule.until > at]
    by_tool: dict[str, list[Rule]] = {}
    reached: dict[int, int] = defaultdict(int)
    alike: dict[tuple[object, ...], Outlook] = {}  # what the same rules say of the same facts
    outlooks = []
    for entry in entries:
        if entry.tool not in by_tool:
            by_tool[entry.tool] = [rule for rule in live if rule.tool is None or rule.tool.holds(entry.tool)]
        about = [rule for rule in by_tool[entry.tool] if _is_about(rule, entry)]
        for rule in about:
            reached[id(rule)] += 1
        facts = (entry.tool, entry.kind, entry.open_world, *map(id, about))
        known = alike.get(facts)
        if known is None:
            known = alike[facts] = _outlook(entry, about, at)
        outlooks.append(known if known.entry is entry else replace(known, entry=entry))
    reaches = tuple(_reach(rule, reached[id(rule)], policy, entries, agents, at) for rule in policy.rules)
    return Coverage(tuple(outlooks), reaches)


def _outlook(entry: Entry, about: Sequence[Rule], at: datetime) -> Outlook:
    """`about` are the rules that name the entry."""
    always = Policy(tuple(rule for rule in about if not _is_conditional(rule)))
    facts = Facts(entry.kind, entry.tool, entry.function, "", "", entry.open_world, at)
    verdict = judge(always, facts)
    decides = next((rule for rule in (*always.rules, *DEFAULTS) if rule.id == verdict.rule.id), None)
    sometimes = tuple(
        rule for rule in about if _is_conditional(rule) and _changes(rule, verdict, decides, always.rules)
    )
    return Outlook(entry, verdict, sometimes, named=any(_names(rule) for rule in about))


def _changes(rule: Rule, verdict: Verdict, decides: Rule | None, always: Sequence[Rule]) -> bool:
    """Whether a rule that holds for some calls makes them fare otherwise than the rest."""
    effect = _effect(rule)
    if isinstance(verdict, Refuse) or effect is Effect.WAIT:
        return False
    if effect is Effect.REFUSE or (rule.odd and isinstance(verdict, Allow)):
        return True
    if effect is Effect.ASK:
        return isinstance(verdict, Allow) and not any(
            narrower(other, rule) for other in always if other.effect is Effect.ALLOW
        )
    stands_over = decides is None or decides in DEFAULTS or narrower(rule, decides)
    return not isinstance(verdict, Allow) and stands_over and not (decides is not None and decides.odd)


def _names(rule: Rule) -> bool:
    """Whether a rule picks functions; one that is about every call, such as a loop detector, names none."""
    return any(part is not None for part in (rule.tool, rule.function, rule.kind, rule.open_world))


def _effect(rule: Rule) -> Effect:
    return Effect.ASK if rule.odd else rule.effect


def _is_conditional(rule: Rule) -> bool:
    """Whether it takes a call to say if the rule holds."""
    parts = (rule.agent, rule.starter, rule.tainted, rule.rate, rule.repeated)
    return bool(rule.arguments) or any(part is not None for part in parts) or rule.effect is Effect.WAIT


def is_of_a_call(rule: Rule) -> bool:
    """Whether it takes more of a call than its agent and starter to say if the rule holds."""
    counts = (rule.tainted, rule.rate, rule.repeated)
    return bool(rule.arguments) or any(part is not None for part in counts) or rule.effect is Effect.WAIT


def _is_about(rule: Rule, entry: Entry) -> bool:
    """Whether a rule that is about the entry's tool is about the entry."""
    return (
        (rule.function is None or rule.function.holds(entry.function))
        and (rule.kind is None or rule.kind.holds(entry.kind.value))
        and rule.open_world in (None, entry.open_world)
    )


def _reach(
    rule: Rule, functions: int, policy: Policy, entries: Iterable[Entry], agents: Collection[str], at: datetime
) -> Reach:
    if rule.until is not None and rule.until <= at:
        return Reach(0, f"it ended on {rule.until:%Y-%m-%d}")
    if not functions:
        return Reach(0, _why_none(rule, entries))
    if rule.agent is not None and not any(rule.agent.holds(name) for name in agents):
        return Reach(functions, f"there is no agent {' or '.join(rule.agent.words)}")
    return Reach(functions, slips=_slips(rule, policy))


def _why_none(rule: Rule, entries: Iterable[Entry]) -> str:
    listed = list(entries)
    if not listed:
        return "the catalog lists no function yet"
    if rule.tool is not None and not any(rule.tool.holds(entry.tool) for entry in listed):
        return f"there is no tool {' or '.join(rule.tool.words)}"
    if rule.function is not None and not any(
        rule.function.holds(entry.function) for entry in listed if rule.tool is None or rule.tool.holds(entry.tool)
    ):
        return f"{'its tool has' if rule.tool else 'there is'} no function {' or '.join(rule.function.words)}"
    return "no function is all that it asks for"


def _slips(rule: Rule, policy: Policy) -> tuple[str, ...]:
    """The arguments that a call gets past a cautious rule by leaving out, where no rule is about their absence."""
    if rule.odd or rule.effect not in (Effect.ASK, Effect.REFUSE):
        return ()
    minded = {
        condition.path
        for other in policy.rules
        if other.effect in (Effect.ASK, Effect.REFUSE)
        for condition in other.arguments
        if condition.how is Is.ABSENT
    }
    paths = {condition.path for condition in rule.arguments if condition.how in SLIPS} - minded
    return tuple(sorted(map(words.pointer, paths)))
