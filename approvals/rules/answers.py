"""The answers a question can be given, as a person reads them: the word, the key, and what each will do."""

from dataclasses import dataclass

from base.figures import plural


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
