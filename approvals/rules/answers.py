"""The answers a question can be given, as a person reads them: the word, the key, and what each will do."""

from dataclasses import dataclass
from typing import Final

from approvals.rules.deciding import still_to_come
from base.figures import plural
from jobs.rules.states import HoldKind, HoldState

PRESETS: Final = (
    "Not needed any more.",
    "The arguments are wrong: check them, then ask again.",
    "This is not allowed here: do not ask again.",
    "Do it another way, without this call.",
)


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """One button: its word, its key on the keyboard, and in one line what it will do."""

    answer: str
    title: str
    key: str
    does: str
    tone: str = ""
    asks: str = ""  # the label of a text it takes
    must: bool = False  # whether that text must be given
    why_not: str = ""  # why nobody can give it, whoever they are
    presets: tuple[str, ...] = ()  # texts that one press gives


@dataclass(frozen=True, slots=True)
class Stand:
    """What the lines under a question's answers depend on.

    `running` calls of its job are made just now; `acted` says that an earlier attempt of this one may have acted;
    `have` people have approved it of those `needed`, the reader not counted.
    """

    kind: HoldKind
    running: int = 0
    acted: bool = False
    on_unknown: str = "ask"
    have: int = 0
    needed: int = 1


@dataclass(frozen=True, slots=True)
class Ended:
    """How a closed question is headed, after the function's name, with an icon and a tone that tell yes from no."""

    title: str
    icon: str
    tone: str


_ENDED: Final = {
    "approve": Ended("was approved", "check", "tone-ok"),
    "edit": Ended("was edited and approved", "check", "tone-ok"),
    "deny": Ended("was denied", "ban", "tone-bad"),
    "happened": Ended("happened, a person says", "check", "tone-ok"),
    "start_again": Ended("was called by a program that was started again", "rotate-cw", "tone-ok"),
    "finished": Ended("was called by a program that is finished, a person says", "check", "tone-ok"),
    "again": Ended("was sent for one more attempt", "rotate-cw", "tone-ok"),
    "stop": Ended("was stopped, with its job", "circle-stop", "tone-bad"),
    HoldState.EXPIRED.value: Ended("was not answered in time", "timer-off", "tone-mute"),
    HoldState.WITHDRAWN.value: Ended("needs no answer any more", "undo-2", "tone-mute"),
}


def ended(state: HoldState, answer: str) -> Ended:
    """How a question is headed that is closed: by `answer`, where a person gave one."""
    return _ENDED.get(answer) or _ENDED.get(state.value) or Ended("is answered", "user-check", "tone-mute")


def of_one(stand: Stand) -> tuple[AnswerOption, ...]:
    """What can be answered to one question, and what each answer will do (RULES A9, U7)."""
    match stand.kind:
        case HoldKind.APPROVE | HoldKind.RETRY:
            return (_approve(stand), _edit(stand), _deny(stand), _stop(stand.running))
        case HoldKind.UNKNOWN:
            return (_HAPPENED, _AGAIN, _stop(stand.running))
        case HoldKind.SESSION:
            return (_START_AGAIN, _FINISHED, _stop(stand.running))


_HAPPENED: Final = AnswerOption(
    "happened",
    "It happened",
    "h",
    "The job goes on; the agent reads that a person checked and says it happened.",
    "",
    "Its result, if you know it",
)
_AGAIN: Final = AnswerOption(
    "again", "Run it again", "r", "One more attempt under the same key, after policy is judged again."
)


_START_AGAIN: Final = AnswerOption(
    "start_again",
    "Start it again",
    "r",
    "The program starts anew. Writes that honour their key are not made twice; others it may make again.",
)
_FINISHED: Final = AnswerOption(
    "finished",
    "It is finished",
    "h",
    "Nothing starts again. The job ends COMPLETED with what you write here as its output.",
    "",
    "What came of it, if you know it",
)


def _approve(stand: Stand) -> AnswerOption:
    again = " again" if stand.kind is HoldKind.RETRY else ""
    does = f"Exactly these arguments run{again}, once, after policy is judged again."
    have = stand.have + 1
    if have < stand.needed:
        does = f"It does not run yet: then {still_to_come(have, stand.needed)} approve exactly this."
    elif stand.needed > 1:
        does = f"You are approval {stand.needed} of {stand.needed}. {does}"
    return AnswerOption("approve", "Approve", "a", does, "main")


def _edit(stand: Stand) -> AnswerOption:
    does = "Change the arguments, see the difference, then approve what runs instead. The agent is told."
    if stand.needed > 1:
        does += f" Approvals given before are void: {plural(stand.needed - 1, 'other person', 'other people')} must."
    acted = "An earlier attempt may have acted with these arguments, so they are not changed." if stand.acted else ""
    return AnswerOption("edit", "Edit and approve", "e", does, why_not=acted)


def _deny(stand: Stand) -> AnswerOption:
    does = "It does not run. The job goes on; the agent reads your reason."
    if stand.acted:
        then = "you are asked whether it did" if stand.on_unknown == "ask" else "its job fails, as its agent says"
        does = f"It does not run again. An earlier attempt may have acted: {then}."
    return AnswerOption("deny", "Deny", "d", does, "danger", "Reason, for the agent", True, presets=PRESETS)


def _stop(running: int) -> AnswerOption:
    first = f"; {plural(running, 'running call')} {'is' if running == 1 else 'are'} stopped first" if running else ""
    return AnswerOption(
        "stop", "Stop the job", "s", f"No further call of this job starts{first}. It ends CANCELED.", "danger"
    )


def together(*, count: int, jobs: int, keyless: int, old_keys: int) -> tuple[AnswerOption, ...]:
    """What can be answered about `count` unknown outcomes of `jobs` jobs at once (RULES U7).

    They are run again together only when each honours its key: `keyless` counts those that do not, `old_keys` those
    whose key is older than 24 h.
    """
    one = count == 1
    calls, each = ("this call", "it") if one else (f"these {count:,} calls", "each")
    again = f"Makes one more attempt of {calls}, {each} under its own key, after policy is judged again."
    if old_keys:
        again += f" {plural(old_keys, 'key')} older than 24 h: that may write twice."
    return (
        AnswerOption(
            "happened",
            "It happened" if one else "They happened",
            "h",
            f"Says of {calls} that a person checked and that {each} happened. {plural(jobs, 'job')} can go on.",
            "",
            "Its result, if you know it" if one else "The result of every one of them, if you know it",
        ),
        AnswerOption("again", "Run it again" if one else "Run them again", "r", again, why_not=_keyless(keyless)),
        AnswerOption(
            "stop",
            "Stop the job" if one else "Stop their jobs",
            "s",
            f"Cancels {plural(jobs, 'job')}: nothing more of {'it' if jobs == 1 else 'them'} starts, what runs is"
            " stopped first. What these calls did stays unknown.",
            "danger",
        ),
    )


def _keyless(count: int) -> str:
    if not count:
        return ""
    them = "it" if count == 1 else "those"
    return f"{plural(count, 'call')} without a key may write twice when run again: open {them} alone."
