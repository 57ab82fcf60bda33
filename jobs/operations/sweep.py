"""What nobody else will end: lost nodes, overdue attempts and turns, expired holds, limits, stalled jobs (MACHINES 4).

Every node's pulse sweeps; an advisory lock keeps it to one at a time, and each step is safe to be made twice.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import takewhile
from typing import Final
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection
from django.db.models import Exists, OuterRef, Q

from base import db
from catalog.models import KillSwitch
from catalog.rules.wire import Wire
from jobs.models import Attempt, Call, Hold, Job, Node, Turn
from jobs.operations import cancel, events, holds, moves, nodes, switches, work
from jobs.queries import locks
from jobs.rules.limits import CANCEL_PATIENCE, LEASE, SWEEP_GRACE
from jobs.rules.orders import End, Outcome
from jobs.rules.reasons import Reason
from jobs.rules.states import ASKING, JOB_FINAL, MOVING, JobState, NodeState, TurnState
from jobs.rules.why import Why

log = logging.getLogger(__name__)

LOCK: Final = 0x6F7A30  # "oz0"
BATCH: Final = 200  # of each kind in one sweep: a second later comes the next

type Work = tuple[UUID, UUID]  # (tenant, row)
GONE: Final = [NodeState.LOST, NodeState.GONE]


def sweep(*, dice: Callable[[], float], enough: Callable[[], bool] = lambda: False, lose_nodes: bool = True) -> int:
    """Do what is overdue; returns how much was done. Nothing, when another process is sweeping.

    Once `enough` says so the rest is left to the next sweep, so that a node's pulse also beats, and stops what must
    stop, while there is much to end. Without `lose_nodes` no silent node is declared lost: the sweeper has been away
    itself and cannot tell.
    """
    with _alone() as mine:
        if not mine:
            return 0
        done = sum(nodes.lose(node_id=node_id) for node_id in _silent_nodes()) if lose_nodes else 0
        steps: list[tuple[Callable[[], list[Work]], Callable[[UUID, UUID], int]]] = [
            (_switches_on, lambda tenant, switch: switches.apply(tenant=tenant, switch_id=switch, enough=enough)),
            (_overdue_attempts, lambda tenant, attempt: _close(tenant, attempt, dice())),
            (_overdue_turns, _lose_turn),
            (_expired_holds, lambda tenant, hold: holds.expire(tenant=tenant, hold_id=hold)),
            (_jobs_past_deadline, _end_at_limit),
            (_stalled_jobs, _judge),
        ]
        for find, act in steps:
            if not enough():
                done += _each(find(), act, enough)
    return done


def _each(found: list[Work], act: Callable[[UUID, UUID], int], enough: Callable[[], bool]) -> int:
    """Do each until that is enough; one that cannot be done is logged and keeps none of the others waiting.

    A lost database and a missing lock are no matter of one row, and are raised.
    """
    done = 0
    for tenant, row in takewhile(lambda _: not enough(), found):
        try:
            done += act(tenant, row)
        except (OperationalError, InterfaceError, moves.Conflict):
            raise
        except Exception:
            log.exception("the sweep could not end %s of tenant %s; it tries again with the next pulse", row, tenant)
    return done


@contextmanager
def _alone() -> Iterator[bool]:
    """A session lock, so that it spans the sweep's many transactions; a dropped connection drops it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        mine: bool = cursor.fetchone()[0]
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def _silent_nodes() -> list[UUID]:
    with db.sweep() as now:
        silent = Node.objects.filter(state__in=[NodeState.ALIVE, NodeState.DRAINING])
        return list(silent.filter(heartbeat_at__lt=now - timedelta(seconds=LEASE)).values_list("pk", flat=True)[:BATCH])


def _switches_on() -> list[Work]:
    """Every switch that is on: one turned on by plain SQL has so far only kept work from starting."""
    with db.sweep():
        on = KillSwitch.objects.filter(off_at__isnull=True).order_by("-on_at")
        return list(on.values_list("tenant_id", "pk")[:BATCH])


def _overdue_attempts() -> list[Work]:
    """Attempts of gone nodes past their full limit, and of living ones past it plus a grace (RULES L5, MACHINES 2).

    A stopped attempt of a living node is waited for longer: its end may still be seen (RULES L2).
    """
    with db.sweep() as now:
        gone = Q(node__state__in=GONE, limit_at__lt=now)
        late = Q(limit_at__lt=now - timedelta(seconds=SWEEP_GRACE), stop_requested_at__isnull=True)
        unstoppable = Q(limit_at__lt=now - timedelta(seconds=CANCEL_PATIENCE))
        found = Attempt.objects.filter(gone | late | unstoppable, ended_at__isnull=True)
        return list(found.order_by("limit_at").values_list("tenant_id", "pk")[:BATCH])


def _close(tenant: UUID, attempt_id: UUID, jitter: float) -> bool:
    """Settle an attempt as the worst that it may have been; only a node that is gone is said to be lost (RULES U4)."""
    with db.read(tenant):
        gone = Attempt.objects.filter(pk=attempt_id, node__state__in=GONE).exists()
    reason = Reason.NODE_LOST if gone else Reason.TIME_LIMIT
    lost = Outcome(End.LOST, reason, Wire(went_out=True), end_known=False)
    return work.settle(tenant=tenant, attempt_id=attempt_id, outcome=lost, jitter=jitter)


def _overdue_turns() -> list[Work]:
    with db.sweep() as now:
        found = Turn.objects.filter(Q(node__state__in=GONE) | Q(limit_at__lt=now), state=TurnState.ASKED)
        return list(found.values_list("tenant_id", "pk")[:BATCH])


def _lose_turn(tenant: UUID, turn_id: UUID) -> bool:
    """A turn whose node is gone: the same turn is asked again."""
    with db.write(tenant) as now:
        job_id = Turn.objects.filter(pk=turn_id).values_list("job_id", flat=True).first()
        job = locks.job(job_id) if job_id else None
        turn = locks.turn(turn_id)
        if job is None or turn is None or turn.state != TurnState.ASKED:
            return False
        if turn.limit_at > now and not _has_gone(turn.node_id):
            return False
        moves.turn(turn, TurnState.LOST, now=now)
        events.judge_later(job.pk)
        return True


def _has_gone(node_id: UUID | None) -> bool:
    """Whether a node has gone or was declared lost."""
    return node_id is not None and Node.objects.filter(pk=node_id, state__in=GONE).exists()


def _expired_holds() -> list[Work]:
    with db.sweep() as now:
        found = Hold.objects.filter(closed_at__isnull=True, expires_at__lte=now)
        return list(found.order_by("expires_at").values_list("tenant_id", "pk")[:BATCH])


def _jobs_past_deadline() -> list[Work]:
    with db.sweep() as now:
        found = Job.objects.filter(deadline_at__lte=now).exclude(state__in=[*JOB_FINAL, JobState.CANCELLING])
        return list(found.values_list("tenant_id", "pk")[:BATCH])


def _end_at_limit(tenant: UUID, job_id: UUID) -> bool:
    with db.write(tenant) as now:
        job = locks.job(job_id)
        if job is None or job.state in JOB_FINAL or job.state == JobState.CANCELLING:
            return False
        limit = "its agent's limit of minutes was reached (limits.minutes)"
        cancel.end(job, ends_as=JobState.FAILED, reason=Why.JOB_LIMIT, failure_kind="limit", detail=limit, now=now)
        return True


def _stalled_jobs() -> list[Work]:
    """Live jobs with nothing open and no turn due: what judging at the last settle should never leave behind."""
    with db.sweep():
        open_calls = Call.objects.filter(job=OuterRef("pk"), state__in=MOVING | ASKING)
        asked = Turn.objects.filter(job=OuterRef("pk"), state=TurnState.ASKED)
        live = Job.objects.filter(state__in=[JobState.RUNNING, JobState.WAITING, JobState.CANCELLING])
        found = live.filter(~Exists(open_calls), ~Exists(asked), turn_due_at__isnull=True)
        return list(found.values_list("tenant_id", "pk")[:BATCH])


def _judge(tenant: UUID, job_id: UUID) -> bool:
    with db.write(tenant):
        job = locks.job(job_id)
        if job is None or job.state in JOB_FINAL:
            return False
        events.judge_later(job_id)
        return True
