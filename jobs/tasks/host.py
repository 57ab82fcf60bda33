"""A node inside this process: its slots, the threads that carry work through claim, attempt and settling, its end.

PostgreSQL decides what runs; a host only looks after what it has claimed until that is settled.
"""

import logging
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import random
from typing import Final
from uuid import UUID

from django.db import (
    DEFAULT_DB_ALIAS,
    close_old_connections,
    connection,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from base import db, ids
from base.clock import boot_time
from base.log_lines import about
from catalog.operations import refreshing
from catalog.rules.servers import ServerSpec
from catalog.rules.wire import Wire
from jobs import wake
from jobs.agent import models
from jobs.node.node import Node
from jobs.node.values import NotOpened
from jobs.operations import nodes, turns, work
from jobs.rules.orders import End, Outcome, Result
from jobs.rules.reasons import Reason
from jobs.rules.turns import TurnOrder, TurnOutcome
from jobs.tasks import measuring, paying
from jobs.tasks.harnesses import Harnesses
from jobs.tasks.pulse import Pulse

log = logging.getLogger(__name__)

CALL_SLOTS: Final = 32
TURN_SLOTS: Final = 8  # a cap of their own, so that turns cannot starve calls (MACHINES 4)
ABOUT: Final = {wake.RUN_CALL: "call", wake.RUN_TURN: "job"}  # what a piece of work is called by in the log
RETRY_PAUSES: Final = (0.1, 0.2, 0.5, 1.0)  # seconds between tries to reach the database; the last one repeats


class Host:
    """One node, hosted here. `offer` may be called from any thread and never blocks."""

    def __init__(self, *, name: str, call_slots: int = CALL_SLOTS, turn_slots: int = TURN_SLOTS) -> None:
        self.name: Final = name
        self.harnesses: Final = Harnesses(self)
        self.node: Final = Node(on_late=self._keep_late, on_program_end=self.harnesses.ended)
        self._slots: Final = {wake.RUN_CALL: call_slots, wake.RUN_TURN: turn_slots}
        self._work: Final = {wake.RUN_CALL: self._run_call, wake.RUN_TURN: self._run_turn}
        self._at: Final[dict[str, set[UUID]]] = {wake.RUN_CALL: set(), wake.RUN_TURN: set()}
        self._tools: Final[dict[UUID, int]] = {}  # tool → calls of it being made here
        self._taken: Final[set[tuple[UUID, UUID]]] = set()  # (tool, job) whose one server has its call here
        self._measuring: Final[set[UUID]] = set()  # tools whose listing is being read here
        self._tenant_of: Final[dict[UUID, UUID]] = {}  # open attempt → tenant
        self._questions: Final[dict[UUID, models.Question]] = {}  # turn → what is being asked here
        self._grace: float | None = None  # seconds that questions still have once this node is ending
        self._lock: Final = threading.Lock()
        self._connections: Final[list[BaseDatabaseWrapper]] = []  # of the threads that work
        self._pool: Final = ThreadPoolExecutor(
            call_slots + turn_slots + 2, thread_name_prefix="oz0-work", initializer=self._enlist
        )
        self._up = False
        self._stopping = threading.Event()
        self._given_up = threading.Event()
        self._pulse: Final = Pulse(self)
        self.node_id: UUID = ids.new()

    def start(self) -> None:
        """Register this process's row, start the loop and the pulse, and take work. Does nothing more once stopped."""
        self.node.start()
        self.register()
        self.until_committed(measuring.look_at_sandboxes)
        with self._lock:
            if self._stopping.is_set():
                return
            self._up = True
            self._pulse.start()
            wake.offer_here(self.offer)

    def register(self) -> None:
        """Write a new row for this process; waits for the database."""
        slots = self._slots[wake.RUN_CALL]
        made = self.until_committed(
            lambda: nodes.register(name=self.name, host=socket.gethostname(), pid=os.getpid(), slots=slots)
        )
        if made is not None:
            self.node_id = made

    def stop(self, *, grace: float) -> None:
        """Claim nothing more, let attempts finish for `grace` seconds, then cancel them; settle each, and leave.

        Blocks until every outcome is in the database, or `give_up` says that there is no more time (RULES L11).
        Called once more meanwhile, it only shortens the first call's grace.
        """
        with self._lock:
            again, up = self._stopping.is_set(), self._up
            self._stopping.set()
            self._grace = grace
            for question in self._questions.values():
                question.end_within(grace, models.NODE_ENDED)
        if again:
            self.node.shutdown(grace)
            return
        if not up:
            self._never_up()
            return
        wake.withdraw_offer(self.offer)
        # beside the attempts: a database that is away must not keep them from being ended in time
        self._pool.submit(self.until_committed, lambda: nodes.drain(node_id=self.node_id))
        self.node.shutdown(grace)
        self._pool.shutdown(wait=True)
        self._pulse.stop()
        for one in self._connections:
            one.close()
        self.until_committed(lambda: nodes.leave(node_id=self.node_id))

    def _never_up(self) -> None:
        """Stopped while it was still waiting for the database: there is nothing to settle."""
        self.give_up()
        self.node.shutdown(0)
        self._pool.shutdown(wait=True)

    def give_up(self) -> None:
        """Stop waiting for a database that does not come back; the sweep of another node settles what is left."""
        self._given_up.set()

    def offer(self, kind: str, tenant: UUID, row: UUID) -> bool:
        """Take a due call, turn or harness session if there is a free slot; False when there is none."""
        if kind == wake.RUN_SESSION:
            return not self._stopping.is_set() and self.harnesses.offer(tenant, row)
        with self._lock:
            at = self._at[kind]
            if self._stopping.is_set() or row in at or len(at) >= self._slots[kind]:
                return False
            at.add(row)
        self._pool.submit(self._carry, kind, tenant, row)
        return True

    def free(self, kind: str) -> int:
        """How many more of a kind this node could take now."""
        with self._lock:
            return 0 if self._stopping.is_set() else self._slots[kind] - len(self._at[kind])

    def full_tools(self) -> frozenset[UUID]:
        """The tools without a free slot on this node."""
        with self._lock:
            return frozenset(tool for tool, left in self._tools.items() if left <= 0)

    def taken(self) -> frozenset[tuple[UUID, UUID]]:
        """The sandboxed tools and jobs, each with one server, that are about a call on this node."""
        with self._lock:
            return frozenset(self._taken)

    def open_attempts(self) -> dict[UUID, UUID]:
        """The tenant of each attempt being made here."""
        with self._lock:
            return dict(self._tenant_of)

    def questions(self) -> list[models.Question]:
        """What is being asked of models here."""
        with self._lock:
            return list(self._questions.values())

    def soon(self, act: Callable[[], None]) -> bool:
        """Do something outside the pulse, on one of this host's threads; False, and nothing, once it is stopping."""
        if self._stopping.is_set():
            return False
        self._pool.submit(self._guarded, act)
        return True

    def finish(self, act: Callable[[], None]) -> None:
        """The same for what must be done also while this host is stopping: it is waited for."""
        self._pool.submit(self._guarded, act)

    def consumed(self) -> None:
        """A message of the broker has reached this node."""
        self.soon(lambda: nodes.consumed(node_id=self.node_id))

    def until_committed[Made](self, act: Callable[[], Made]) -> Made | None:
        """Do a write until it commits, however long the database is away. None once given up.

        An act that may have committed unseen is made again, so it must be safe to be made twice.
        """
        tries = 0
        while not self._given_up.is_set():
            try:
                return act()
            except db.GONE as error:
                connection.close()
                if tries == 0:
                    log.warning("the database does not answer (%s); trying until it does", type(error).__name__)
                self._given_up.wait(RETRY_PAUSES[min(tries, len(RETRY_PAUSES) - 1)])
                tries += 1
        return None

    # --- inside --------------------------------------------------------------------------------------------------

    def _enlist(self) -> None:
        """Remember the connection of a thread of the pool, which ends without closing it."""
        mine = connections[DEFAULT_DB_ALIAS]
        mine.inc_thread_sharing()
        self._connections.append(mine)

    def _carry(self, kind: str, tenant: UUID, row: UUID) -> None:
        done = False
        try:
            with about(**{ABOUT[kind]: row}):
                done = self._guarded(lambda: self._work[kind](tenant, row))
        finally:
            with self._lock:
                self._at[kind].discard(row)
            if done:  # what failed is still due: hurrying would only make it fail again at once, for ever
                self._pulse.hurry()

    def _guarded(self, act: Callable[[], None]) -> bool:
        """Do it; False when it ended by an error, which is logged."""
        db.fresh()
        try:
            act()
        except db.GONE as error:
            connection.close()
            log.warning("the database went away (%s); the pulse will find the work again", type(error).__name__)
        except Exception:
            log.exception("a piece of work ended by an error of ours")
        else:
            return True
        finally:
            close_old_connections()
        return False

    def _run_call(self, tenant: UUID, call_id: UUID) -> None:
        spec = work.server_needed(tenant=tenant, call_id=call_id)
        if spec is None or not self._take_slot(spec):
            return
        try:
            self._attempt(tenant, call_id, spec)
        finally:
            with self._lock:
                self._tools[spec.tool_id] += 1
                if spec.job is not None:
                    self._taken.discard((spec.tool_id, spec.job))

    def _attempt(self, tenant: UUID, call_id: UUID, spec: ServerSpec) -> None:
        opened = self.node.open(spec)
        if isinstance(opened, NotOpened):
            if not self._stopping.is_set():
                work.opening_failed(
                    tenant=tenant, call_id=call_id, why=opened.detail, jitter=random(), status=opened.status
                )
            return
        attempt_id, started = ids.new(), boot_time()  # the clock starts before the claim is sent (MACHINES 3)
        try:
            order = work.start(tenant=tenant, call_id=call_id, node_id=self.node_id, attempt_id=attempt_id)
        except db.GONE:
            # The claim may have committed unseen: nothing was sent, and that is what is settled.
            connection.close()
            unsent = Outcome(
                End.NOT_MADE, Reason.LATE_START, Wire(detail="The claim's commit was not seen, so nothing was sent.")
            )
            self.until_committed(
                lambda: work.settle(tenant=tenant, attempt_id=attempt_id, outcome=unsent, jitter=random())
            )
            return
        if order is None:
            return
        with self._lock:
            self._tenant_of[attempt_id] = tenant
        try:
            with about(job=order.job_id, attempt=attempt_id):
                outcome = self.node.run(order, started=started)
                self.until_committed(
                    lambda: work.settle(tenant=tenant, attempt_id=attempt_id, outcome=outcome, jitter=random())
                )
            if (seen := outcome.seen) is not None:
                self.until_committed(lambda: measuring.keep_seen(tenant=tenant, tool_id=spec.tool_id, seen=seen))
        finally:
            with self._lock:
                del self._tenant_of[attempt_id]

    def _take_slot(self, spec: ServerSpec) -> bool:
        with self._lock:
            left = self._tools.setdefault(spec.tool_id, spec.slots)
            if left <= 0 or (spec.tool_id, spec.job) in self._taken:
                return False
            self._tools[spec.tool_id] = left - 1
            if spec.job is not None:
                self._taken.add((spec.tool_id, spec.job))
            return True

    def _run_turn(self, tenant: UUID, job_id: UUID) -> None:
        node_id = self.node_id
        try:
            order = turns.start(tenant=tenant, job_id=job_id, node_id=node_id)
        except db.GONE:
            # The claim may have committed unseen: nobody was asked, so the turn is due again.
            connection.close()
            self.until_committed(lambda: turns.give_back(tenant=tenant, job_id=job_id, node_id=node_id))
            return
        if order is not None:
            paying.ask(self, order)

    def answer_to(self, order: TurnOrder) -> TurnOutcome:
        """Ask a model, as one of the questions that the pulse looks after and that this host's end cuts short."""
        question = models.Question(order)
        with self._lock:
            self._questions[order.turn_id] = question
            if self._grace is not None:
                question.end_within(self._grace, models.NODE_ENDED)
        try:
            return question.ask()
        finally:
            with self._lock:
                del self._questions[order.turn_id]

    def _keep_late(self, attempt_id: UUID, result: Result) -> None:
        """Called on a thread of the node's own, which keeps no connection."""

        def keep() -> None:
            tenant = work.tenant_of_attempt(attempt_id)
            if tenant is not None:
                work.keep_late_reply(tenant=tenant, attempt_id=attempt_id, result=result)

        self._guarded(lambda: self.until_committed(keep))
        connection.close()

    def measure(self, tenant: UUID, tool_id: UUID) -> None:
        """Read a tool's listing, on one of this host's threads; not while that is being done."""
        with self._lock:
            if tool_id in self._measuring:
                return
            self._measuring.add(tool_id)

        def measure() -> None:
            try:
                measuring.measure(self.node, tenant=tenant, tool_id=tool_id)
            finally:
                with self._lock:
                    self._measuring.discard(tool_id)

        self.soon(measure)

    def refresh(self, tenant: UUID, sign_in: UUID) -> None:
        """Ask for new tokens of a connection, on one of this host's threads; what came is kept until it is saved."""

        def once() -> None:
            work = refreshing.claim(tenant=tenant, sign_in=sign_in)
            if work is not None:
                outcome = refreshing.ask(work)
                self.until_committed(lambda: refreshing.settle(work, outcome))

        self.soon(once)


_host: Host | None = None


def start(*, name: str = "node") -> Host:
    """Host a node in this process. Raises `RuntimeError` when there is one already."""
    global _host
    if _host is not None:
        raise RuntimeError("this process hosts a node already")
    _host = Host(name=name)
    _host.start()
    return _host


def hosted() -> Host | None:
    """The node this process hosts, if any."""
    return _host


def stop(*, grace: float) -> None:
    """End this process's node in order; nothing when there is none."""
    if _host is not None:
        _host.stop(grace=grace)
