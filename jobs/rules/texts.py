"""What the model reads of a call that has no answer of its own. None says a person decided when none did (RULES U9)."""

import json
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


EDIT_SHOWN: Final = 4_000  # characters of edited arguments that the model reads


def edited(arguments: Any, text: str) -> str:
    """The text of a call whose arguments a person edited before it ran (RULES A9)."""
    spelled = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    cut = spelled if len(spelled) <= EDIT_SHOWN else f"{spelled[:EDIT_SHOWN]}… ({len(spelled):,} characters in all)"
    return f"A person edited the arguments of this call while it waited for approval. They are now: {cut}\n\n{text}"


def late_note(name: str, text: str) -> str:
    """What a model is told of a call that expired and that a person then asked for again (RULES A8)."""
    return f"A person asked again for your call of {name}, which had expired. This is what came of it:\n\n{text}"


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
