"""A node's own row: born, heard from, draining, gone (MACHINES 1, 3, 4). Nodes belong to no tenant."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from base import db
from jobs import wake
from jobs.models import Attempt, Node
from jobs.operations import moves
from jobs.rules.limits import LEASE
from jobs.rules.orders import Progress
from jobs.rules.states import NodeState


class NodeGone(RuntimeError):
    """This node was declared lost: stop every attempt and register anew."""


@dataclass(frozen=True, slots=True)
class StopRequest:
    """An attempt of this node that must stop, and why (a code of `reasons`)."""

    attempt_id: UUID
    reason: str


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT oz0_now()")
        now: datetime = cursor.fetchone()[0]
    return now


def register(*, name: str, host: str, pid: int, slots: int) -> UUID:
    """Write this process's row, alive; returns its id."""
    with db.durable() as now:
        return Node.objects.create(name=name, host=host, pid=pid, slots=slots, started_at=now, heartbeat_at=now).pk


def beat(*, node_id: UUID, servers: list[dict[str, Any]]) -> None:
    """Say that this node lives. Raises `NodeGone` when it was declared lost meanwhile."""
    alive = Node.objects.filter(pk=node_id, state__in=[NodeState.ALIVE, NodeState.DRAINING])
    with db.durable() as now:
        if alive.update(heartbeat_at=now, servers=servers) != 1:
            raise NodeGone(str(node_id))


def consumed(*, node_id: UUID) -> None:
    """Say that a message of the broker has reached this node."""
    with db.durable() as now:
        Node.objects.filter(pk=node_id).update(consumed_at=now)


def drain(*, node_id: UUID) -> None:
    """Claim nothing more."""
    _move(node_id, NodeState.DRAINING)


def leave(*, node_id: UUID) -> None:
    """This process is about to end, with every attempt of it settled.

    Its row may be a new one: declared lost while it drained, it has registered anew.
    """
    _move(node_id, NodeState.DRAINING)
    _move(node_id, NodeState.GONE)


def lose(*, node_id: UUID) -> bool:
    """Declare a node lost that has been silent for a lease; False when it was heard from after all.

    Its open attempts are closed by the sweep once their full limit has passed (RULES L5).
    """
    with db.durable():
        row = _living(node_id)
        now = _now()
        if row is None or row.heartbeat_at >= now - timedelta(seconds=LEASE):
            return False
        return moves.node(row, NodeState.LOST, now=now)


def _move(node_id: UUID, to: NodeState) -> bool:
    with db.durable():
        row = _living(node_id)
        if row is None or row.state == to:
            return False
        return moves.node(row, to, now=_now())


def _living(node_id: UUID) -> Node | None:
    """The node, held alone, if it is neither gone nor lost."""
    living = Node.objects.select_for_update(no_key=True).exclude(state__in=[NodeState.GONE, NodeState.LOST])
    return living.filter(pk=node_id).first()


def stop_requests(attempts: Collection[UUID]) -> list[StopRequest]:
    """Which of these open attempts, of whatever tenants, must stop."""
    with db.sweep():
        asked = Attempt.objects.filter(pk__in=attempts, stop_requested_at__isnull=False, ended_at__isnull=True)
        return [StopRequest(pk, reason) for pk, reason in asked.values_list("pk", "stop_reason")]


def keep_progress(*, attempt_id: UUID, progress: Progress) -> None:
    """Keep the last progress of an open attempt, with its resume token (RULES P1, P5). Demands an open write."""
    attempt = Attempt.objects.filter(pk=attempt_id, ended_at__isnull=True)
    if attempt.update(**moves.progress_fields(progress)):
        job_id = attempt.values_list("job_id", flat=True).get()
        db.after_commit(lambda: wake.job_progressed(job_id=job_id))
