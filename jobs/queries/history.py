"""What a job was started with, and what its model has read so far."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from jobs.models import Call, Event, Job, Turn
from jobs.rules import texts
from jobs.rules.states import CALL_FINAL, CallState, Effect, TurnState
from jobs.rules.turns import PastCall, PastTurn, tokens_of


def past_turns(job: Job) -> tuple[PastTurn, ...]:
    """Every answered turn of a job's present run with its calls, oldest first; a summary is for the next run alone."""
    calls: dict[UUID, list[PastCall]] = {}
    run = Call.objects.filter(job=job, run_number=job.run_number)
    late: dict[str, Call] = {}
    for call in run.select_related("result_body", "arguments_body", "edited_from").order_by("activity"):
        if call.turn_id is not None:
            arguments, name = _asked_with(call), call.model_name
            if call.asked_through:  # the model reads of its past what it wrote itself
                name, arguments = call.asked_through, {"function": name, "arguments": arguments}
            calls.setdefault(call.turn_id, []).append(
                PastCall(name, call.model_call_id, arguments, text_for_model(call))
            )
        elif call.again_of_id is not None:
            late[str(call.pk)] = call
    turns = _answered(job).select_related("response").order_by("number")
    return tuple(
        PastTurn(
            turn.say,
            tuple(calls.get(turn.pk, ())),
            tuple(note_of(late[one]) for one in turn.notes),
            turn.response.data if turn.response else None,
        )
        for turn in turns
    )


def used(job: Job) -> tuple[int, int]:
    """(tokens, millionths of a dollar) that all turns of a job have used so far, as far as prices are known."""
    usages = list(Turn.objects.filter(job=job).values_list("usage", flat=True))
    return sum(map(tokens_of, usages)), sum(usage.get("micro_usd", 0) for usage in usages)


def _asked_with(call: Call) -> Any:
    """The arguments as the model wrote them, also when a person edited them since."""
    if call.edited_from is not None:
        return call.edited_from.data
    return call.arguments_body.data if call.arguments_body else call.arguments


def late_calls(job: Job) -> list[Call]:
    """The calls that a person asked for again, that are over, and that no turn of the model was told of (RULES A8)."""
    late = Call.objects.filter(job=job, run_number=job.run_number, again_of__isnull=False, state__in=CALL_FINAL)
    found = list(late.select_related("result_body", "again_of").order_by("activity"))
    if not found:
        return []
    told = {one for notes in _answered(job).values_list("notes", flat=True) for one in notes}
    return [call for call in found if str(call.pk) not in told]


def awaits_a_note(job: Job) -> bool:
    """Whether the model will be told of a call that a person asked for again: it is open, or over and not yet told."""
    again = Call.objects.filter(job=job, run_number=job.run_number, again_of__isnull=False)
    return again.exclude(state__in=CALL_FINAL).exists() or bool(late_calls(job))


def _answered(job: Job) -> QuerySet[Turn]:
    return Turn.objects.filter(job=job, run_number=job.run_number, state=TurnState.ANSWERED, sums_up=False)


def note_of(call: Call) -> str:
    """What the model is told of a call that was made late, since a person asked for it again."""
    return texts.late_note(call.model_name, text_for_model(call))


def first_input(job_id: UUID) -> Any:
    """What a job was started with, also after it continued as new; None when there is no such job."""
    continued = Event.objects.filter(job_id=job_id, kind="job.continued").order_by("seq").first()
    if continued is not None:
        return continued.data["before"]
    return Job.objects.filter(pk=job_id).values_list("input", flat=True).first()


def text_for_model(call: Call) -> str:
    """What the model reads of a call, and whether a person edited it (RULES U9, A9, C8)."""
    told = came_of(call)
    if call.edited_from_id is None:
        return told
    return texts.edited(call.arguments_body.data if call.arguments_body else call.arguments, told)


def came_of(call: Call, *, whole: bool = True) -> str:
    """What came of a call: the tool's answer, or our words where there is none. Not `whole`: its first 8 KiB do."""
    answer = call.result_body.data["text"] if whole and call.result_body else call.result_text
    return texts.for_model(
        state=CallState(call.state),
        reason=call.reason,
        effect=Effect(call.effect),
        answer=answer,
        detail=call.detail,
        note=call.result_text if call.state == CallState.HAPPENED else call.detail,
        read_only=call.read_only,
    )
