"""What nobody else will do: end lost nodes, overdue attempts and turns, expired holds and stalled jobs, start routines.

Every node's pulse sweeps; an advisory lock keeps it to one at a time, and each step is safe to be made twice.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from base import db
from base.clock import boot_time
from budgets.operations import sweep as spend
from catalog.models import KillSwitch
from catalog.rules.switching import Mode
from catalog.rules.wire import Wire
from jobs.models import Attempt, Call, Driver, Hold, Job, Node, Routine, Session, Turn
from jobs.operations import (
    cancel,
    events,
    harness,
    holds,
    moves,
    nodes,
    outside,
    routines,
    spending,
    switches,
    turns,
    work,
)
from jobs.queries import locks
from jobs.rules.limits import CANCEL_PATIENCE, LEASE, SWEEP_GRACE
from jobs.rules.orders import End, Outcome
from jobs.rules.reasons import Reason
from jobs.rules.states import ASKING, JOB_FINAL, MOVING, JobState, NodeState, TurnState
from jobs.rules.turns import LOST
from jobs.rules.why import Why

log = logging.getLogger(__name__)

LOCK: Final = 0x6F7A30  # "oz0"
BATCH: Final = 200  # of each kind in one sweep: a second later comes the next

PUT_OFF: Final = 60.0  # seconds in which a row that could not be ended keeps no other waiting

type Work = tuple[UUID, UUID]  # (tenant, row)
type Find = Callable[[datetime], QuerySet[Any]]  # what is overdue at this time, the oldest first
GONE: Final = [NodeState.LOST, NodeState.GONE]


class Sweeper:
    """One process's sweeps. It remembers what it could not end, and leaves that alone for a minute."""

    def __init__(self, *, clock: Callable[[], float] = boot_time) -> None:
        self._clock: Final = clock
        self._put_off: Final[dict[UUID, float]] = {}  # row → when it is tried again

    def sweep(
        self, *, dice: Callable[[], float], enough: Callable[[], bool] = lambda: False, lose_nodes: bool = True
    ) -> int:
        """Do what is overdue; returns how much was done. Nothing, when another process is sweeping.

        Once `enough` says so the rest is left to the next sweep, so that a node's pulse also beats, and stops what
        must stop, while there is much to end. Without `lose_nodes` no silent node is declared lost: the sweeper has
        been away itself and cannot tell.
        """
        with _alone() as mine:
            if not mine:
                return 0
            done = sum(nodes.lose(node_id=node_id) for node_id in _silent_nodes()) if lose_nodes else 0
            steps: list[tuple[Find, Callable[[UUID, UUID], int]]] = [
                (_switches_on, lambda tenant, switch: switches.apply(tenant=tenant, switch_id=switch, enough=enough)),
                (_overdue_attempts, lambda tenant, attempt: _close(tenant, attempt, dice())),
                (_overdue_turns, _lose_turn),
                (_lost_sessions, lambda tenant, session: harness.lose(tenant=tenant, session_id=session)),
                (_settled_sessions, lambda tenant, session: harness.settle(tenant=tenant, session_id=session)),
                (_expired_holds, lambda tenant, hold: holds.expire(tenant=tenant, hold_id=hold)),
                (_jobs_past_deadline, _end_at_limit),
                (_idle_clients, outside.end_idle),
                (_stalled_jobs, _judge),
                (_routines_due, lambda tenant, routine: routines.fire(tenant=tenant, routine=routine)),
                (spending.untold, spending.tell_left),
                (spend.abandoned, spend.interrupt),
                (spend.due, spend.move_on),
                (spend.long_over, spend.clear),
            ]
            for find, act in steps:
                if not enough():
                    done += self._each(find, act, enough)
        return done

    def _each(self, find: Find, act: Callable[[UUID, UUID], int], enough: Callable[[], bool]) -> int:
        """Do each until that is enough; one that cannot be done is logged and keeps none of the others waiting.

        A switch is tried again with every sweep: there are few, and what it must stop runs on (RULES L7).

        A lost database and a missing lock are no matter of one row, and are raised.
        """
        done = 0
        for tenant, row in takewhile(lambda _: not enough(), self._found(find)):
            try:
                done += act(tenant, row)
            except (*db.GONE, moves.Conflict):
                raise
            except Exception:
                if find is not _switches_on:
                    self._put_off[row] = self._clock() + PUT_OFF
                log.exception("the sweep could not end %s of tenant %s; it tries again later", row, tenant)
        return done

    def _found(self, find: Find) -> list[Work]:
        put_off = [row for row, until in self._put_off.items() if until > self._clock()]
        for row in set(self._put_off) - set(put_off):
            del self._put_off[row]
        with db.sweep() as now:
            return list(find(now).exclude(pk__in=put_off).values_list("tenant_id", "pk")[:BATCH])


@contextmanager
def _alone() -> Iterator[bool]:
    """A session lock, so that it spans the sweep's many transactions; a dropped connection drops it.

    PostgreSQL drops the connection of a sweeper that stands still for a lease: its machine is frozen or cut off, and
    all others would wait for it with what is overdue (RULES L8).
    """
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [LOCK, f"{LEASE:g}s"])
        mine: bool = cursor.fetchone()[0] is not None
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute(_GIVE_BACK, [LOCK])


_TAKE: Final = "SELECT CASE WHEN pg_try_advisory_lock(%s) THEN set_config('idle_session_timeout', %s, false) END"
_GIVE_BACK: Final = "SELECT pg_advisory_unlock(%s), set_config('idle_session_timeout', '0', false)"


def _silent_nodes() -> list[UUID]:
    with db.sweep() as now:
        silent = Node.objects.filter(state__in=[NodeState.ALIVE, NodeState.DRAINING])
        return list(silent.filter(heartbeat_at__lt=now - timedelta(seconds=LEASE)).values_list("pk", flat=True)[:BATCH])


def _switches_on(_now: datetime) -> QuerySet[KillSwitch]:
    """Every kill switch that is on: one turned on by plain SQL has so far only kept work from starting."""
    return KillSwitch.objects.filter(off_at__isnull=True, mode=Mode.KILL).order_by("-on_at")


def _overdue_attempts(now: datetime) -> QuerySet[Attempt]:
    """Attempts of gone nodes past their full limit, and of living ones past it plus a grace (RULES L5, MACHINES 2).

    A stopped attempt of a living node is waited for longer: its end may still be seen (RULES L2).
    """
    gone = Q(node__state__in=GONE, limit_at__lt=now)
    late = Q(limit_at__lt=now - timedelta(seconds=SWEEP_GRACE), stop_requested_at__isnull=True)
    unstoppable = Q(limit_at__lt=now - timedelta(seconds=CANCEL_PATIENCE))
    return Attempt.objects.filter(gone | late | unstoppable, ended_at__isnull=True).order_by("limit_at")


def _close(tenant: UUID, attempt_id: UUID, jitter: float) -> bool:
    """Settle an attempt as the worst that it may have been; only a node that is gone is said to be lost (RULES U4)."""
    with db.read(tenant):
        gone = Attempt.objects.filter(pk=attempt_id, node__state__in=GONE).exists()
    reason = Reason.NODE_LOST if gone else Reason.TIME_LIMIT
    lost = Outcome(End.LOST, reason, Wire(went_out=True), end_known=False)
    return work.settle(tenant=tenant, attempt_id=attempt_id, outcome=lost, jitter=jitter)


def _overdue_turns(now: datetime) -> QuerySet[Turn]:
    found = Turn.objects.filter(Q(node__state__in=GONE) | Q(limit_at__lt=now), state=TurnState.ASKED)
    return found.order_by("limit_at")


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
        usage = {**turn.usage, LOST: turn.usage.get(LOST, 0) + 1}  # its request may have gone out, and cost something
        moves.turn(turn, TurnState.LOST, now=now, usage=usage)
        events.judge_later(job.pk)
        return True


def _has_gone(node_id: UUID | None) -> bool:
    """Whether a node has gone or was declared lost."""
    return node_id is not None and Node.objects.filter(pk=node_id, state__in=GONE).exists()


def _lost_sessions(_now: datetime) -> QuerySet[Session]:
    """Harness sessions whose node has gone (RULES K6)."""
    return harness.lost_ones()


def _settled_sessions(_now: datetime) -> QuerySet[Session]:
    """Lost harness sessions whose last attempt has ended."""
    return harness.settled_ones()


def _expired_holds(now: datetime) -> QuerySet[Hold]:
    return Hold.objects.filter(closed_at__isnull=True, expires_at__lte=now).order_by("expires_at")


def _jobs_past_deadline(now: datetime) -> QuerySet[Job]:
    resting = [*JOB_FINAL, JobState.CANCELLING, JobState.WAITING]
    found = Job.objects.filter(deadline_at__lte=now).exclude(state__in=resting)
    return found.order_by("deadline_at")


def _end_at_limit(tenant: UUID, job_id: UUID) -> bool:
    with db.write(tenant) as now:
        job = locks.job(job_id)
        over = job is None or job.state in JOB_FINAL or job.state in (JobState.CANCELLING, JobState.WAITING)
        if job is None or over or job.deadline_at is None or job.deadline_at > now:
            return False
        why, kind = Why.JOB_LIMIT, "limit_minutes"
        cancel.end(job, ends_as=JobState.FAILED, reason=why, failure_kind=kind, detail=turns.OUT_OF_TIME, now=now)
        return True


def _idle_clients(now: datetime) -> QuerySet[Job]:
    """Jobs whose outside client makes no call any more."""
    open_calls = Call.objects.filter(job=OuterRef("pk"), state__in=MOVING | ASKING)
    found = Job.objects.filter(driver=Driver.OUTSIDE, state=JobState.RUNNING, idle_at__lte=now)
    return found.filter(~Exists(open_calls)).order_by("idle_at")


def _stalled_jobs(_now: datetime) -> QuerySet[Job]:
    """Live jobs with nothing open and no turn due: what judging at the last settle should never leave behind.

    The job of an outside client runs on like that: its next call comes from there. So does one whose harness session
    is open.
    """
    open_calls = Call.objects.filter(job=OuterRef("pk"), state__in=MOVING | ASKING)
    asked = Turn.objects.filter(job=OuterRef("pk"), state=TurnState.ASKED)
    live = Job.objects.filter(state__in=[JobState.RUNNING, JobState.WAITING, JobState.CANCELLING])
    live = live.exclude(driver=Driver.OUTSIDE, state=JobState.RUNNING)
    live = live.exclude(pk__in=harness.open_ones().values("job_id"))
    return live.filter(~Exists(open_calls), ~Exists(asked), turn_due_at__isnull=True).order_by("id")


def _routines_due(now: datetime) -> QuerySet[Routine]:
    """Routines whose next job is to be started (MACHINES 4)."""
    return Routine.objects.filter(due_at__lte=now).order_by("due_at")


def _judge(tenant: UUID, job_id: UUID) -> bool:
    with db.write(tenant):
        job = locks.job(job_id)
        if job is None or job.state in JOB_FINAL:
            return False
        events.judge_later(job_id)
        return True
