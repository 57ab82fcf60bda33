"""The tasks that wake a node. Each makes one offer; what the node cannot take now, its pulse will find (STYLE 16)."""

from uuid import UUID

from celery import shared_task

from jobs import wake
from jobs.tasks import host


@shared_task(name=wake.RUN_CALL, ignore_result=True)  # type: ignore[untyped-decorator]
def run_call(*, tenant: str, row: str, **_: object) -> None:
    """A call became due somewhere."""
    _offer(wake.RUN_CALL, tenant, row)


@shared_task(name=wake.RUN_TURN, ignore_result=True)  # type: ignore[untyped-decorator]
def run_turn(*, tenant: str, row: str, **_: object) -> None:
    """A turn became due somewhere."""
    _offer(wake.RUN_TURN, tenant, row)


@shared_task(name=wake.PROVE, ignore_result=True)  # type: ignore[untyped-decorator]
def prove(**_: object) -> None:
    """A message that only shows that messages get through, to whichever node took it."""
    here = host.hosted()
    if here is not None:
        here.consumed()


@shared_task(name=wake.RUN_SESSION, ignore_result=True)  # type: ignore[untyped-decorator]
def run_session(*, tenant: str, row: str, **_: object) -> None:
    """A harness session may be started somewhere."""
    _offer(wake.RUN_SESSION, tenant, row)


def _offer(kind: str, tenant: str, row: str) -> None:
    here = host.hosted()
    if here is not None:
        here.offer(kind, UUID(tenant), UUID(row))
