"""What a model reads in the studio's own words: of calls without an answer of their own, and of the runs before.

None says that a person decided when none did (RULES U9).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jobs.rules.states import CallState, Effect
from jobs.rules.why import Why

MAY_HAVE_ACTED: Final = " It may have acted before it stopped: check before doing it again."
ACTED_EARLIER: Final = (
    "\n\nThis was the answer to a further attempt. An earlier attempt of this call got no answer and may have acted:"
    " the error may come from that. Check before doing it again."
)
NOTHING_MADE: Final = " Nothing was done."
UNSEEN: Final = (
    "Nobody knows whether this call was taken in: the studio's database went away meanwhile. Have a person look at its"
    " job before you make it again."
)

SUM_UP: Final = (
    "This conversation has become long and ends here. Your work goes on in a new one, which will have your"
    " instructions, the job's input, the studio's own record of the calls that changed something, and what you write"
    " now; nothing else of this conversation. So call no function now. Write down all that is needed to go on: what is"
    " done and what came of it; what you have found out, with ids, figures and names exactly as they are; what is left"
    " to do, in order; what must not be done again. At most 1,500 words. Answer with this text alone."
)
CONTINUES: Final = (
    "The job continues as new once this program has ended with exit code 0 and no call of it is open. Calls that you"
    " make until then are still of this run."
)
CONTINUES_AS_ASKED: Final = (
    "Nothing was changed: this session has said {} times what its next run begins with, and may say it no more. What it"
    " said last stands. Do the rest of this run's work, or end with exit code 0: the job continues as new then."
)
RECORD_SHOWN: Final = 300  # characters of a call's arguments, and of what came of it, in the record of earlier runs

EDIT_SHOWN: Final = 4_000  # characters of edited arguments that the model reads


def edited(arguments: Any, text: str) -> str:
    """The text of a call whose arguments a person edited before it ran (RULES A9)."""
    spelled = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    cut = spelled if len(spelled) <= EDIT_SHOWN else f"{spelled[:EDIT_SHOWN]}… ({len(spelled):,} characters in all)"
    return f"A person edited the arguments of this call while it waited for approval. They are now: {cut}\n\n{text}"


def late_note(name: str, text: str) -> str:
    """What a model is told of a call that expired and that a person then asked for again (RULES A8)."""
    return f"A person asked again for your call of {name}, which had expired. This is what came of it:\n\n{text}"


def recorded(
    name: str, arguments: Any, *, place: tuple[int, int], text: str, answered: bool, edited: bool = False
) -> str:
    """One call of an earlier run, in the record that the next one begins with (RULES G3).

    `place` is its run, from 1, and its number in that. The `text` of one that was `answered` is the tool's own and may
    be long; else it is ours, and is told whole.
    """
    spelled = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    earlier = ACTED_EARLIER if answered and text.endswith(ACTED_EARLIER) else ""
    came = f"It was answered: {_cut(text.removesuffix(earlier))} {' '.join(earlier.split())}" if answered else text
    by = " A person had edited its arguments." if edited else ""
    return f"- {name} {_cut(spelled)} (conversation {place[0]}, call {place[1]}):{by} {came}".rstrip()


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= RECORD_SHOWN else f"{flat[:RECORD_SHOWN]}… ({len(flat):,} characters in all)"


def begun_with(
    summary: str, record: Sequence[str], others: Mapping[str, int], taint: str, *, unclear: int = 0
) -> tuple[str, str]:
    """What a run reads of those before it (RULES G3): the studio's own record, and the model's summary of the last.

    `others` counts by name the calls that the record has no line for, and `unclear` how many of them may have happened;
    `taint` is the manual that tainted the job.
    """
    lines = ["This job goes on from an earlier conversation, which had become too long."]
    if record:
        lines.append(
            "The studio's own record of the calls of earlier conversations that changed something or may have, or that"
            " a person did not let run. Do not make them again because you see nothing of them here:"
        )
        lines += record
    else:
        lines.append("By the studio's own record no call of the earlier conversations changed anything.")
    if others:
        rest = ", ".join(f"{name} {count:,} times" for name, count in sorted(others.items()))
        lines.append(f"Of these earlier calls this record has no line: {rest}.")
    if unclear:
        lines.append(f"Of {unclear:,} of them nobody knows whether they happened: do not make them again.")
    if taint:
        lines.append(f"The job is tainted: in an earlier conversation it read {taint}, another plugin's manual.")
    return "\n".join(lines), f"All of this text is your own summary of the conversation before this one:\n\n{summary}"


def pending(call: str, state: CallState) -> str:
    """What an outside client reads of a call that is not over yet; `call` is its id (RULES G5)."""
    match state:
        case CallState.HELD:
            now = "This call waits for a person to approve it. Nothing has been done yet"
        case CallState.UNKNOWN:
            now = "Nobody knows yet whether this call happened, and a person is being asked"
        case _:
            now = f"This call is not over yet: it is {state}"
    return f"{now}. Do not make it again: ask for its result later with oz__result, call {call}."


def too_often(limit: int, wait: int, *, looks_up: bool) -> str:
    """What the model reads of a call that came too soon. One that only `looks_up` an earlier call undoes nothing."""
    if looks_up:
        first = "Its result was not looked up. The call itself stands as it was: do not make it again."
    else:
        first = "This call was not made."
    return f"{first} {asks_too_often(limit, wait)}"


def asks_too_often(limit: int, wait: int) -> str:
    """What a client is told that asks more often than it may."""
    return f"This token asks too often: its pace is {limit:,} times a minute. Try again in {wait} s."


def for_model(
    *, state: CallState, reason: str, effect: Effect, answer: str, detail: str, note: str, read_only: bool = False
) -> str:
    """The text for a final (or unknown) call. `answer` is the tool's own text, `note` what a person wrote."""
    if state in (CallState.SUCCEEDED, CallState.ERRORED) and reason not in (Why.BAD_ARGUMENTS, Why.NO_SUCH_FUNCTION):
        if state is CallState.ERRORED and effect is Effect.MAYBE and not read_only:
            return answer + ACTED_EARLIER
        return answer
    acted = "" if read_only else (NOTHING_MADE if effect is Effect.NONE else MAY_HAVE_ACTED)
    match state:
        case CallState.ERRORED:
            return f"This call was not made: {detail}"
        case CallState.UNKNOWN:
            return "Nobody knows whether this call happened. A person is being asked. Do not repeat it."
        case CallState.HAPPENED:
            said = f" The person gave this result: {note}" if note else " No result is known."
            return f"This call had no answer, but a person checked and says that it happened.{said}"
        case CallState.CANCELED if reason == Why.KILL_SWITCH:
            return f"This call was stopped by a kill switch.{acted}"
        case CallState.CANCELED if reason == Why.CLIENT_CANCELLED:
            return f"The client cancelled this call.{acted}"
        case CallState.CANCELED if reason == Why.STOPPED_BY_PERSON:
            return f"A person stopped the job.{acted}"
        case CallState.CANCELED:
            return f"This call ended because its job was cancelled.{acted}"
        case CallState.REFUSED if reason == Why.DENIED:
            return f"A person denied this call. Their reason: {note}{'' if note[-1:] in '.!?…' else '.'}{acted}"
        case CallState.REFUSED if reason == Why.EXPIRED:
            return f"This call had to be approved, and nobody answered in time. Nobody decided against it.{acted}"
        case CallState.REFUSED if reason == Why.KILL_SWITCH:
            return f"A kill switch is on for this tool, function or agent; the call was not started.{acted}"
        case CallState.REFUSED if reason == Why.TOOL_GONE:
            return f"The tool's server offers this function no more, so the call was not started.{acted}"
        case CallState.REFUSED if reason == Why.ENTRY_CHANGED:
            why = f" ({detail})" if detail else ""
            return f"The tool's server describes this function otherwise now, so the call was not started{why}.{acted}"
        case CallState.REFUSED:
            return f"The tool policy refuses this call{f' ({detail})' if detail else ''}; nobody was asked.{acted}"
        case CallState.FAILED if effect is Effect.MAYBE:
            return "Nobody knows whether this call happened, and nobody is asked about it. Do not repeat it."
        case CallState.FAILED if reason == Why.POLICY_REFUSES:
            return (
                f"The tool policy refuses to make this call again{f' ({detail})' if detail else ''}; nobody was asked."
            )
        case _:
            return f"This call failed: {detail or 'no reason is known'}{acted}"
