"""One question to the model: claimed, asked by a node, settled into calls or the job's end (RULES G2)."""

from datetime import datetime, timedelta
from typing import Any, assert_never
from uuid import UUID

from base import db
from base.figures import plural
from catalog.queries import switches
from catalog.rules.answers import storable
from catalog.rules.kept_agents import Unreadable, from_json
from catalog.rules.switching import Mode
from jobs.models import Call, Job, Node, Turn
from jobs.operations import cancel, events, intake, masking, moves
from jobs.queries import history, locks
from jobs.rules.limits import TURN_LIMIT
from jobs.rules.states import JobState, NodeState, TurnState
from jobs.rules.turns import TurnAnswer, TurnFailed, TurnOrder, TurnOutcome
from jobs.rules.why import Why


def start(*, tenant: UUID, job_id: UUID, node_id: UUID) -> TurnOrder | None:
    """Claim a job's due turn. None when it is not due, another is at it, or the job ends instead."""
    with db.write(tenant) as now:
        locks.gate_shared()
        job = locks.job_for_turn(job_id)
        if job is None or job.turn_due_at is None or job.turn_due_at > now:
            return None
        if not Node.objects.filter(pk=node_id, state=NodeState.ALIVE).exists():
            return None
        switch = switches.over_agent(job.agent_name)
        if switch is not None and switch.mode == Mode.PAUSE:
            return None
        if switch is not None:
            cancel.end(job, ends_as=JobState.CANCELED, reason=Why.KILL_SWITCH, now=now, detail=switch.reason)
            return None
        try:
            agent = from_json(job.agent.definition)
        except Unreadable as error:
            cancel.fail_for_agent(job, str(error), now=now)
            return None
        if job.turns_made >= agent.limits.turns:
            limit = f"its agent may take {plural(agent.limits.turns, 'turn')} (limits.turns)"
            cancel.end(job, ends_as=JobState.FAILED, reason=Why.JOB_LIMIT, failure_kind="limit", detail=limit, now=now)
            return None
        late = history.late_calls(job)
        turn = _ask(job, node_id, late, limit_at=now + timedelta(seconds=TURN_LIMIT))
        job.turn_due_at = None
        job.save(update_fields=["turn_due_at"])
        if job.state == JobState.QUEUED:
            moves.job(job, JobState.RUNNING, reason="", now=now, started_at=now)
        return TurnOrder(
            tenant=tenant,
            job_id=job.pk,
            turn_id=turn.pk,
            number=turn.number,
            asked=turn.asked,
            agent=agent,
            given=job.input,
            past=history.past_turns(job),
            notes=tuple(history.note_of(call) for call in late),
        )


def _ask(job: Job, node_id: UUID, late: list[Call], *, limit_at: datetime) -> Turn:
    """The job's next turn, or the same one once more when it was lost with its node.

    Its model is told of the `late` calls, and no further one of them (RULES A8).
    """
    now = db.must_write()
    notes = [str(call.pk) for call in late]
    lost = Turn.objects.filter(job_id=job.pk, state=TurnState.LOST).first()
    if lost is not None:
        moves.turn(
            lost,
            TurnState.ASKED,
            now=now,
            node_id=node_id,
            asked=lost.asked + 1,
            asked_at=now,
            limit_at=limit_at,
            notes=notes,
        )
        return lost
    turn = Turn(
        tenant_id=job.tenant_id,
        job=job,
        number=job.turns_made + 1,
        run_number=job.run_number,
        node_id=node_id,
        asked_at=now,
        limit_at=limit_at,
        notes=notes,
    )
    moves.begin_turn(turn)
    return turn


def give_back(*, tenant: UUID, job_id: UUID, node_id: UUID) -> bool:
    """A node could not see whether its claim of a job's turn was committed, and asked nobody: the turn is due again.

    False when the claim was not committed. A node claims one turn of a job at a time, so it knows which.
    """
    with db.write(tenant) as now:
        job = locks.job(job_id)
        turn = Turn.objects.filter(job_id=job_id, node_id=node_id, state=TurnState.ASKED).first()
        if job is None or turn is None:
            return False
        moves.turn(turn, TurnState.LOST, now=now)
        events.judge_later(job.pk)
    return True


def settle(*, tenant: UUID, turn_id: UUID, asked: int, outcome: TurnOutcome) -> bool:
    """Close a turn: its calls are taken in, or its words end the job. False when it was closed or asked anew before."""
    with db.write(tenant, named="submit") as now:
        locks.gate_shared()
        found = Turn.objects.filter(pk=turn_id).values_list("job_id", flat=True).first()
        job = locks.job(found) if found else None
        turn = locks.turn(turn_id)
        if job is None or turn is None or turn.state != TurnState.ASKED or turn.asked != asked:
            return False
        match outcome:
            case TurnFailed():
                error = masking.text(storable(outcome.error))
                moves.turn(turn, TurnState.FAILED, now=now, error=error)
                reason = Why.AGENT_ERROR if outcome.agents_fault else Why.MODEL_ERROR
                _end(job, reason=reason, detail=error)
            case TurnAnswer():
                wanted = [{"function": w.model_name, "id": w.model_call_id} for w in outcome.wanted]
                say = masking.text(storable(outcome.say))
                moves.turn(
                    turn,
                    TurnState.ANSWERED,
                    now=now,
                    say=say,
                    wanted=storable(wanted),
                    model=storable(outcome.model)[:200],
                    usage=dict(outcome.usage),
                )
                _go_on(job, turn, outcome, say=say)
            case never:
                assert_never(never)
        events.judge_later(job.pk)
    return True


def _go_on(job: Job, turn: Turn, answer: TurnAnswer, *, say: str) -> None:
    now = db.must_write()
    wanted = list(answer.wanted)
    job.turns_made = turn.number
    job.save(update_fields=["turns_made"])
    if job.state == JobState.CANCELLING:
        return
    if not wanted and history.awaits_a_note(job):
        return  # a call that a person asked for again is open, or not told of yet: the model is asked once more
    if answer.continues is not None and not wanted:
        _continue_as_new(job, masking.value(storable(answer.continues)))
        return
    if not wanted:
        moves.job(job, JobState.COMPLETED, reason=Why.DONE, now=now, output=say)
        return
    try:
        most = from_json(job.agent.definition).limits.calls
    except Unreadable as error:
        cancel.fail_for_agent(job, str(error), now=now)
        return
    if job.calls_made + len(wanted) > most:
        limit = f"its agent may make {plural(most, 'call')} (limits.calls)"
        cancel.end(job, ends_as=JobState.FAILED, reason=Why.JOB_LIMIT, failure_kind="limit", detail=limit, now=now)
        return
    intake.submit(job=job, turn=turn, wanted=wanted, now=now)


def _continue_as_new(job: Job, given: dict[str, Any]) -> None:
    """Begin the job's next run: its model reads nothing of the runs before, its calls count from 1 (RULES K2, G3).

    An answered turn without calls leaves nothing of the job open. What the agent's limits count goes on counting: they
    are the job's, and a job could else go on for ever.
    """
    job.calls_before = job.calls_made
    job.run_number += 1
    job.next_activity = 1
    before, job.input = job.input, {**job.input, **given}
    job.save(update_fields=["calls_before", "run_number", "next_activity", "input"])
    events.record(job.pk, "job.continued", run=job.run_number, before=before, input=job.input)


def _end(job: Job, *, reason: Why, detail: str) -> None:
    """Fail a job whose turn failed. Nothing else of it is open while a turn is asked, unless it is being cancelled."""
    if job.state != JobState.CANCELLING:
        moves.job(job, JobState.FAILED, reason=reason, now=db.must_write(), failure_kind=reason, detail=detail)
