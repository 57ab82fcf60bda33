"""Messages sent after a commit: ids only, each of which may be lost, late or doubled without harm.

PostgreSQL decides what runs and every node's pulse finds due work by itself; a message only makes it sooner.
"""

import logging
import time
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from celery import current_app
from kombu.exceptions import OperationalError

from base import nudge

log = logging.getLogger(__name__)

RUN_CALL: Final = "jobs.run_call"
RUN_TURN: Final = "jobs.run_turn"
PROVE: Final = "jobs.prove"
PROOF_LIFE: Final = 20.0  # seconds; what nobody took by then proves nothing
RUN_SESSION: Final = "jobs.run_session"
_BROKER_PAUSE: Final = 1.0  # seconds without trying after the broker did not answer

type Offer = Callable[[str, UUID, UUID], bool]
_hosts: list[Offer] = []
_broker_down_until = 0.0


def offer_here(offer: Offer) -> None:
    """Let a node hosted by this process take work without a hop through the broker."""
    _hosts.append(offer)


def withdraw_offer(offer: Offer) -> None:
    """The node hosted here takes no more work."""
    _hosts.remove(offer)


def call(*, tenant: UUID, call_id: UUID) -> None:
    """A call became due."""
    _send(RUN_CALL, "calls", tenant, call_id)


def turn(*, tenant: UUID, job_id: UUID) -> None:
    """A turn became due."""
    _send(RUN_TURN, "turns", tenant, job_id)


def session(*, tenant: UUID, session_id: UUID) -> None:
    """A harness session may be started."""
    _send(RUN_SESSION, "turns", tenant, session_id)


def job_changed(*, tenant: UUID, job_id: UUID, seq: int, asked: bool) -> None:
    """A job's journal grew to `seq`: whoever looks at it may read again. `asked`: a question was opened or closed."""
    nudge.job(tenant, job_id, seq)
    if asked:
        nudge.approvals(tenant)


def job_progressed(*, job_id: UUID) -> None:
    """A running call of the job got further, which its journal does not note: open pages may read again."""
    nudge.job_progressed(job_id)


def switched(*, tenant: UUID) -> None:
    """A switch was turned on or off: pages that show the tenant's work may read again."""
    nudge.everything(tenant)


def prove() -> None:
    """Send a message round, which whichever node takes it notes."""
    _publish(PROVE, "chores", {}, expires=PROOF_LIFE)


def _send(task: str, queue: str, tenant: UUID, row: UUID) -> None:
    if not any(offer(task, tenant, row) for offer in _hosts):
        _publish(task, queue, {"tenant": str(tenant), "row": str(row)})


def _publish(task: str, queue: str, kwargs: dict[str, Any], **options: Any) -> None:
    global _broker_down_until
    if time.monotonic() < _broker_down_until:
        return
    try:
        current_app.send_task(task, kwargs=kwargs, queue=queue, ignore_result=True, retry=False, **options)
    except (OperationalError, OSError) as error:
        _broker_down_until = time.monotonic() + _BROKER_PAUSE
        log.warning("the broker does not answer (%s); work goes on at the pulse's pace", type(error).__name__)
