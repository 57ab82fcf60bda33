"""What a job was started with, and what its model has read so far."""

from typing import Any
from uuid import UUID

from jobs.models import Call, Event, Job, Turn
from jobs.rules import texts
from jobs.rules.states import CallState, Effect, TurnState
from jobs.rules.turns import PastCall, PastTurn


def past_turns(job: Job) -> tuple[PastTurn, ...]:
    """Every answered turn of a job's present run with its calls, oldest first."""
    calls: dict[UUID, list[PastCall]] = {}
    run = Call.objects.filter(job=job, run_number=job.run_number)
    for call in run.select_related("result_body", "arguments_body").order_by("activity"):
        if call.turn_id is not None:
            arguments = call.arguments_body.data if call.arguments_body else call.arguments
            name = call.model_name
            if call.asked_through:  # the model reads of its past what it wrote itself
                name, arguments = call.asked_through, {"function": name, "arguments": arguments}
            calls.setdefault(call.turn_id, []).append(
                PastCall(name, call.model_call_id, arguments, text_for_model(call))
            )
    turns = Turn.objects.filter(job=job, run_number=job.run_number, state=TurnState.ANSWERED).order_by("number")
    return tuple(PastTurn(turn.say, tuple(calls.get(turn.pk, ()))) for turn in turns)


def first_input(job_id: UUID) -> Any:
    """What a job was started with, also after it continued as new; None when there is no such job."""
    continued = Event.objects.filter(job_id=job_id, kind="job.continued").order_by("seq").first()
    if continued is not None:
        return continued.data["before"]
    return Job.objects.filter(pk=job_id).values_list("input", flat=True).first()


def text_for_model(call: Call) -> str:
    """What the model reads of a call: the tool's whole answer, or our words where there is none (RULES U9, C8)."""
    answer = call.result_body.data["text"] if call.result_body else call.result_text
    return texts.for_model(
        state=CallState(call.state),
        reason=call.reason,
        effect=Effect(call.effect),
        answer=answer,
        detail=call.detail,
        note=call.result_text if call.state == CallState.HAPPENED else call.detail,
        read_only=call.read_only,
    )
