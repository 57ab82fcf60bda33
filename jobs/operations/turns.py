"""One question to the model: claimed, asked by a node, settled into calls or the job's end (RULES G2)."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, assert_never
from uuid import UUID

from base import db
from base.figures import plural
from catalog.operations import connections
from catalog.rules.agents import AgentSpec
from catalog.rules.answers import storable
from catalog.rules.kept_agents import Unreadable, from_json
from catalog.rules.model_names import REHEARSAL, connection_of
from catalog.rules.servers import Remote
from jobs import wake
from jobs.models import Call, Job, Turn
from jobs.operations import bodies, cancel, claiming, events, intake, masking, moves, platform, runs
from jobs.queries import history, locks
from jobs.queries import runs as queries
from jobs.queries.tables import TURNS
from jobs.rules.limits import TURN_LIMIT, asked_again
from jobs.rules.runs import MOST_IN_VAIN, as_summary, without_summary
from jobs.rules.spending import Settled
from jobs.rules.states import JobState, TurnState
from jobs.rules.turns import LOST, TurnAnswer, TurnBusy, TurnDenied, TurnFailed, TurnOrder, TurnOutcome, with_lost
from jobs.rules.why import Why

OUT_OF_TIME: Final = (
    "its agent may not run for longer; the time that only people were waited for is not counted (limits.minutes)"
)


def start(*, tenant: UUID, job_id: UUID, node_id: UUID) -> TurnOrder | None:
    """Claim a job's due turn. None when it is not due, another is at it, or the job ends instead."""
    with db.write(tenant) as now:
        locks.gate_shared()
        job = locks.job_for_turn(job_id)
        if job is None or job.turn_due_at is None or job.turn_due_at > now:
            return None
        agent = claiming.agent_for(job, node_id)
        if agent is None:
            return None
        if passed := _limit_passed(job, agent, now):
            kind, limit = passed
            cancel.end(job, ends_as=JobState.FAILED, reason=Why.JOB_LIMIT, failure_kind=kind, detail=limit, now=now)
            return None
        late, past = history.late_calls(job), history.past_turns(job)
        length = 0 if agent.model == REHEARSAL else queries.conversation(job, past)
        sums_up = runs.to_be_summed_up(job, agent, turns=len(past), length=length)
        late = [] if sums_up else late  # a run is over before they are told of, or goes on and tells of them
        turn = _ask(job, node_id, late, sums_up=sums_up, limit_at=now + timedelta(seconds=TURN_LIMIT))
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
            past=past,
            notes=tuple(history.note_of(call) for call in late),
            tools=() if agent.model == REHEARSAL else platform.sent(job, agent),
            remote=None if agent.model == REHEARSAL else _provider(agent, job),
            begun_with=() if agent.model == REHEARSAL else queries.begun_with(job, job.run_number),
            sums_up=sums_up,
            length=length,
        )


def _provider(agent: AgentSpec, job: Job) -> Remote:
    return connections.provider_of(connection_of(agent.model, agent.connection), job.agent_id)


def _limit_passed(job: Job, agent: AgentSpec, now: datetime) -> tuple[str, str] | None:
    """(failure kind, what of it) of the first limit that forbids the job another turn; None when it may take one."""
    limits = agent.limits
    if job.deadline_at is not None and job.deadline_at <= now:
        return "limit_minutes", OUT_OF_TIME
    if job.turns_made >= limits.turns:
        return "limit_turns", f"its agent may take {plural(limits.turns, 'turn')} (limits.turns)"
    if not limits.tokens and not limits.usd:
        return None
    tokens, micro_usd = history.used(job)
    if limits.tokens and tokens >= limits.tokens:
        return "limit_tokens", f"it has used {tokens:,} of the {limits.tokens:,} tokens of its agent (limits.tokens)"
    if limits.usd and micro_usd >= limits.usd * 1_000_000:
        return "limit_usd", f"it has cost ${micro_usd / 1e6:.2f} of its agent's ${limits.usd:.2f} (limits.usd)"
    return None


def _ask(job: Job, node_id: UUID, late: list[Call], *, sums_up: bool, limit_at: datetime) -> Turn:
    """The job's next turn, or the same one once more when it was lost with its node, or its provider was busy.

    Its model is told of the `late` calls, and no further one of them (RULES A8).
    """
    now = db.must_write()
    notes = [str(call.pk) for call in late]
    lost = Turn.objects.filter(job_id=job.pk, state__in=[TurnState.LOST, TurnState.BUSY]).first()
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
            say="",
        )
        return lost
    turn = Turn(
        tenant_id=job.tenant_id,
        job=job,
        number=job.turns_made + 1,
        run_number=job.run_number,
        sums_up=sums_up,
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


def saying(*, tenant: UUID, turn_id: UUID, asked: int, said: str) -> None:
    """Show what the model has said so far of a turn that is being asked. It counts for nothing."""
    with db.write(tenant):
        turn = Turn.objects.filter(pk=turn_id, state=TurnState.ASKED, asked=asked)
        if turn.update(say=masking.text(storable(said))):
            job_id = turn.values_list("job_id", flat=True).get()
            db.after_commit(lambda: wake.job_progressed(job_id=job_id))


def to_stop(asked: Collection[UUID]) -> list[UUID]:
    """Which of these turns, of whatever tenants, nobody waits for any more: their job ends, or another node asks."""
    with db.sweep():
        wanted = Turn.objects.filter(pk__in=asked, state=TurnState.ASKED, job__state=JobState.RUNNING)
        return list(set(asked) - set(wanted.values_list("pk", flat=True)))


def settle(
    *,
    tenant: UUID,
    turn_id: UUID,
    asked: int,
    outcome: TurnOutcome,
    told: Settled | None = None,
    jitter: float = 0.5,
) -> bool:
    """Close a turn: its calls are taken in, or its words end the job. False when it was closed or asked anew before.

    `told` is what the spend journal is to be told of its request, `spending.tell` does that after. `jitter` in [0, 1)
    spreads the next asking of a busy provider.
    """
    with db.write(tenant, named="submit") as now:
        locks.gate_shared()
        found = Turn.objects.filter(pk=turn_id).values_list("job_id", flat=True).first()
        job = locks.job(found) if found else None
        turn = locks.turn(turn_id)
        if job is None or turn is None or turn.state != TurnState.ASKED or turn.asked != asked:
            return False
        match _kept_summary(outcome) if turn.sums_up else outcome:
            case TurnBusy() as busy:
                _busy(job, turn, busy, jitter)
            case TurnFailed() as failed:
                _failed(job, turn, failed)
            case TurnDenied() as denied:
                error = masking.text(storable(denied.error))
                moves.turn(turn, TurnState.FAILED, now=now, error=error)
                _end(job, reason=Why.JOB_LIMIT, detail=error, kind="limit")
            case TurnAnswer() as answer:
                wanted = [{"function": w.model_name, "id": w.model_call_id} for w in answer.wanted]
                say = masking.text(storable(answer.say))
                moves.turn(
                    turn,
                    TurnState.ANSWERED,
                    now=now,
                    say=say,
                    wanted=storable(wanted),
                    model=storable(answer.model)[:200],
                    usage=with_lost(answer.usage, turn.usage.get(LOST, 0)),
                    response_id=None
                    if answer.response is None
                    else bodies.keep(masking.value(storable(answer.response))),
                )
                _go_on(job, turn, answer, say=say)
            case never:
                assert_never(never)
        if told is not None:
            TURNS.update(turn.pk, {"to_confirm": [*turn.to_confirm, told.as_json()]})
        events.judge_later(job.pk)
    return True


def _kept_summary(outcome: TurnOutcome) -> TurnOutcome:
    """A summary that can be used and kept; or why it is none."""
    found = as_summary(outcome)
    if isinstance(found, TurnAnswer) and masking.text(storable(found.say)) == masking.MARKER:
        return TurnFailed("secrets could not be taken out of it, so it was not kept", usage=found.usage)
    return found


def _busy(job: Job, turn: Turn, busy: TurnBusy, jitter: float) -> None:
    """Have the same turn asked again later, with no worker waiting; or fail it when its provider stays busy (G2)."""
    now, error = db.must_write(), masking.text(storable(busy.error))
    usage = {**turn.usage, LOST: turn.usage.get(LOST, 0) + 1} if busy.went_out else turn.usage
    again = asked_again(now, tries=turn.asked, wait=busy.wait, jitter=jitter)
    if again is None:
        error = f"{error} It was asked {plural(turn.asked, 'time')}."
        moves.turn(turn, TurnState.FAILED, now=now, error=error, usage=usage)
        _end(job, reason=Why.MODEL_ERROR, detail=error)
        return
    moves.turn(turn, TurnState.BUSY, now=now, error=error, usage=usage)
    if job.state == JobState.RUNNING:
        job.turn_due_at = again
        job.save(update_fields=["turn_due_at"])


def _failed(job: Job, turn: Turn, failed: TurnFailed) -> None:
    """A turn came to nothing, and its job fails; but a run of which no summary could be had goes on (RULES G3)."""
    now, error = db.must_write(), masking.text(storable(failed.error))
    in_vain = queries.summed_up_in_vain(job) + 1
    if turn.sums_up:
        error = without_summary(error, in_vain=in_vain)
    usage = with_lost(failed.usage, turn.usage.get(LOST, 0))
    moves.turn(turn, TurnState.FAILED, now=now, error=error, usage=usage)
    if turn.sums_up and in_vain < MOST_IN_VAIN:
        job.turns_made = turn.number
        job.save(update_fields=["turns_made"])
        return
    _end(job, reason=Why.AGENT_ERROR if failed.agents_fault else Why.MODEL_ERROR, detail=error)


def _go_on(job: Job, turn: Turn, answer: TurnAnswer, *, say: str) -> None:
    now = db.must_write()
    wanted = list(answer.wanted)
    job.turns_made = turn.number
    job.save(update_fields=["turns_made"])
    if job.state == JobState.CANCELLING:
        return
    if not wanted and history.awaits_a_note(job):
        return  # a call that a person asked for again is open, or not told of yet: the model is asked once more
    if turn.sums_up:
        runs.begin_next(job, {})
        return
    if answer.continues is not None and not wanted:
        runs.begin_next(job, answer.continues)
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
        cancel.end(
            job, ends_as=JobState.FAILED, reason=Why.JOB_LIMIT, failure_kind="limit_calls", detail=limit, now=now
        )
        return
    intake.submit(job=job, turn=turn, wanted=wanted, now=now)


def _end(job: Job, *, reason: Why, detail: str, kind: str = "") -> None:
    """Fail a job whose turn failed. Nothing else of it is open while a turn is asked, unless it is being cancelled."""
    if job.state != JobState.CANCELLING:
        moves.job(job, JobState.FAILED, reason=reason, now=db.must_write(), failure_kind=kind or reason, detail=detail)
