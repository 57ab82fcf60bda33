"""The harness sessions of one host: claimed, given to the node's loop, and settled when their program has ended.

A session takes a thread for its claim and for its settling only, however long its program runs (MACHINES 4).
"""

import logging
import secrets
import threading
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import connection

from base import db
from jobs.operations import harness
from jobs.rules.sessions import SessionEnd, SessionOrder
from tenants.rules.bearers import DIGITS, DRAWN, written

if TYPE_CHECKING:
    from jobs.tasks.host import Host

log = logging.getLogger(__name__)

SLOTS: Final = 16  # programs at a time, beside calls and turns


class Harnesses:
    """`offer` may be called from any thread and never blocks."""

    def __init__(self, host: "Host", slots: int = SLOTS) -> None:
        self._host: Final = host
        self._slots: Final = slots
        self._here: Final[dict[UUID, int]] = {}  # session → incarnation, 0 while it is being claimed
        self._lock: Final = threading.Lock()

    def offer(self, tenant: UUID, session_id: UUID) -> bool:
        """Take a session that may be started, if there is a free slot; False when there is none."""
        with self._lock:
            if session_id in self._here or len(self._here) >= self._slots:
                return False
            self._here[session_id] = 0
        return self._host.soon(lambda: self._begin(tenant, session_id)) or self._forget(session_id)

    def free(self) -> int:
        """How many more sessions this node could take now."""
        with self._lock:
            return self._slots - len(self._here)

    def look_after(self) -> None:
        """Stop the programs that must stop, and give up what is said to run here and does not."""
        with self._lock:
            running = {session: incarnation for session, incarnation in self._here.items() if incarnation}
            known = set(self._here)
        for session_id in harness.to_stop(running, self._host.node_id) if running else ():
            self._host.node.stop_program(session_id)
        for tenant, session_id, incarnation in harness.strays(known, self._host.node_id):
            harness.lose(tenant=tenant, session_id=session_id, incarnation=incarnation)

    def ended(self, order: SessionOrder, how: SessionEnd) -> None:
        """A program has ended: settle its session on one of the host's threads. Called in the node's loop."""
        self._host.finish(lambda: self._settle(order, how))

    def _begin(self, tenant: UUID, session_id: UUID) -> None:
        token, node_id = written("".join(secrets.choice(DIGITS) for _ in range(DRAWN))), self._host.node_id
        order: SessionOrder | None = None
        try:
            order = harness.start(tenant=tenant, session_id=session_id, node_id=node_id, token=token)
        except db.GONE:
            connection.close()  # the claim may have committed unseen: nothing was started, so it is a stray then
            raise
        finally:
            if order is None:
                self._forget(session_id)
        if order is None:
            return
        with self._lock:
            self._here[session_id] = order.incarnation
        if not self._host.node.begin(order):
            self._settle(order, SessionEnd(None, trouble="the node was stopping", stopped=True))

    def _settle(self, order: SessionOrder, how: SessionEnd) -> None:
        node_id = self._host.node_id
        try:
            self._host.until_committed(
                lambda: harness.ended(
                    tenant=order.tenant,
                    session_id=order.session_id,
                    node_id=node_id,
                    incarnation=order.incarnation,
                    how=how,
                )
            )
        finally:
            self._forget(order.session_id)

    def _forget(self, session_id: UUID) -> bool:
        with self._lock:
            self._here.pop(session_id, None)
        return False
