"""The pulse: once a second a node says that it lives, keeps progress, stops what must stop, claims and sweeps.

None of this depends on the broker: a lost message costs a second, a dead broker only speed.
"""

import logging
import threading
from collections.abc import Callable
from functools import partial
from random import random
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection

from base import db
from base.clock import boot_time
from catalog.operations import linting, server_logs
from catalog.queries import sign_ins
from jobs import wake
from jobs.agent import models
from jobs.node.values import ServerStatus
from jobs.operations import nodes, turns
from jobs.operations.sweep import Sweeper
from jobs.queries import due
from jobs.rules.limits import LEASE
from jobs.rules.orders import Progress
from jobs.rules.reasons import Reason

if TYPE_CHECKING:
    from jobs.tasks.host import Host

log = logging.getLogger(__name__)

PERIOD: Final = 1.0  # seconds
GATHERING: Final = 0.02  # seconds between two looks for due work, however many slots become free
FIRST_LINTING: Final = 10.0  # seconds after its start in which a node has more urgent things to do
LINTING: Final = 60.0  # seconds between two looks for what is not linted as it is now
PROVING: Final = 5.0  # seconds between two messages that prove that messages get through
SWEEPING: Final = 0.5  # seconds of a beat, however much is overdue: this node's own life and stops come first


class Pulse:
    """A thread of a host. `hurry` makes it claim at once, for example because a slot has become free."""

    def __init__(self, host: "Host") -> None:
        self._host: Final = host
        self._hurry: Final = threading.Event()
        self._stop: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._beat_on, name="oz0-pulse", daemon=True)
        self._sweeper: Final = Sweeper()
        self._next_beat = 0.0
        self._last_beat = boot_time()
        self._may_lose_nodes_at = 0.0
        self._next_lint = boot_time() + FIRST_LINTING
        self._next_proof = 0.0
        self._kept: dict[UUID, Progress] = {}
        self._told: dict[UUID, str] = {}  # turn → what is shown of its answer
        self._said: dict[tuple[UUID, UUID], tuple[str, ...]] = {}  # (tenant, tool) → what was kept of its servers' log

    def start(self) -> None:
        """Start beating."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._stop.set()
        self._hurry.set()
        self._thread.join(10)

    def hurry(self) -> None:
        """Look for due work now instead of within the second."""
        self._hurry.set()

    def _beat_on(self) -> None:
        while not self._stop.is_set():
            hurried = self._hurry.is_set()
            self._hurry.clear()
            if boot_time() >= self._next_beat:
                self._next_beat = boot_time() + PERIOD
                self._do(
                    self._say_alive,
                    self._flush_progress,
                    self._stop_attempts,
                    self._look_after_questions,
                    self._host.harnesses.look_after,
                    self._end_servers_without_work,
                    self._keep_logs,
                    self._sweep,
                    self._look_after_tools,
                    self._claim,
                    self._prove_messages,
                )
            elif hurried:
                self._do(self._flush_progress, self._claim)
                self._stop.wait(GATHERING)  # what ends meanwhile frees its slots for one look
            else:
                self._do(self._flush_progress)
            self._hurry.wait(min(PERIOD / 2, max(0.0, self._next_beat - boot_time())))
        connection.close()

    def _do(self, *steps: Callable[[], None]) -> None:
        """Take the steps in turn. An error of ours in one costs that one alone; without the database all must wait."""
        for step in steps:
            try:
                db.fresh()
                step()
            except db.GONE as error:
                connection.close()
                log.warning("the pulse could not reach the database (%s)", type(error).__name__)
                self._stop.wait(PERIOD / 5)
                return
            except Exception:
                log.exception("the pulse left out a step by an error of ours")

    def _say_alive(self) -> None:
        try:
            nodes.beat(node_id=self._host.node_id, servers=[_shown(server) for server in self._host.node.servers()])
        except nodes.NodeGone:
            self._start_over()
        else:
            self._watch_the_gap()

    def _end_servers_without_work(self) -> None:
        """Servers of jobs that are over, and of plugins that have left the catalog."""
        servers = self._host.node.servers()
        own = {server.job for server in servers if server.job is not None}
        gone = due.removed({server.tool_id for server in servers}) if servers else set()
        if own or gone:
            self._host.node.end_servers_of(due.over(own) if own else set(), gone)

    def _keep_logs(self) -> None:
        """Keep what the servers of this node said since the last beat, for the tools' pages."""
        said: dict[tuple[UUID, UUID], tuple[str, ...]] = {}
        for server in self._host.node.servers():
            where = (server.tenant, server.tool_id)
            said[where] = (*said.get(where, ()), *server.log)
        self._said = {where: lines for where, lines in self._said.items() if where in said}
        self._do(*(partial(self._keep_log, *where, lines) for where, lines in said.items()))

    def _keep_log(self, tenant: UUID, tool_id: UUID, lines: tuple[str, ...]) -> None:
        if lines and self._said.get((tenant, tool_id)) != lines:
            node_id, name = self._host.node_id, self._host.name
            server_logs.keep(tenant=tenant, tool_id=tool_id, node=node_id, node_name=name, lines=lines)
            self._said[(tenant, tool_id)] = lines

    def _sweep(self) -> None:
        until = boot_time() + SWEEPING
        lose_nodes = boot_time() >= self._may_lose_nodes_at
        self._sweeper.sweep(dice=random, enough=lambda: boot_time() >= until, lose_nodes=lose_nodes)

    def _look_after_tools(self) -> None:
        for tenant, tool_id in due.measurements(most=4):
            self._host.measure(tenant, tool_id)
        for tenant, sign_in in sign_ins.due(most=4):
            self._host.refresh(tenant, sign_in)
        if boot_time() >= self._next_lint:
            self._next_lint = boot_time() + LINTING
            self._host.soon(linting.lint_outdated)

    def _prove_messages(self) -> None:
        """Publishing waits a quarter of a second for a broker that is away, and then not again for a while."""
        if boot_time() >= self._next_proof:
            self._next_proof = boot_time() + PROVING
            wake.prove()

    def _start_over(self) -> None:
        """This node was declared lost: its attempts are no longer its own, so it stops them and registers anew."""
        log.warning("node %s was declared lost; it stops its attempts and registers anew", self._host.node_id)
        for attempt_id in self._host.node.open_attempts():
            self._host.node.stop(attempt_id, Reason.NODE_LOST)
        self._host.register()

    def _watch_the_gap(self) -> None:
        """After a time without the database every node looks silent, so nobody is declared lost for a lease."""
        now = boot_time()
        if now - self._last_beat > LEASE / 2:
            self._may_lose_nodes_at = now + LEASE
        self._last_beat = now

    def _flush_progress(self) -> None:
        """Twice a beat, so that a resume token is durable within a second of its arrival (RULES P5)."""
        tenants = self._host.open_attempts()
        for attempt_id, progress in self._host.node.progress().items():
            if attempt_id in tenants and self._kept.get(attempt_id) != progress:
                with db.write(tenants[attempt_id]):
                    nodes.keep_progress(attempt_id=attempt_id, progress=progress)
                self._kept[attempt_id] = progress
        self._kept = {attempt_id: value for attempt_id, value in self._kept.items() if attempt_id in tenants}

    def _stop_attempts(self) -> None:
        here = self._host.open_attempts()
        for asked in nodes.stop_requests(here) if here else ():
            self._host.node.stop(asked.attempt_id, asked.reason)

    def _look_after_questions(self) -> None:
        """Show what models have said so far, and wait no longer for those whose job is being stopped."""
        asked = {question.order.turn_id: question for question in self._host.questions()}
        for turn_id in turns.to_stop(asked) if asked else ():
            asked[turn_id].end_within(0, models.STOPPED)
        for turn_id, question in asked.items():
            said = question.said
            if said and self._told.get(turn_id) != said:
                turns.saying(tenant=question.order.tenant, turn_id=turn_id, asked=question.order.asked, said=said)
                self._told[turn_id] = said
        self._told = {turn_id: said for turn_id, said in self._told.items() if turn_id in asked}

    def _claim(self) -> None:
        host = self._host
        found = due.work(
            calls=host.free(wake.RUN_CALL),
            turns=host.free(wake.RUN_TURN),
            sessions=host.harnesses.free(),
            full_tools=host.full_tools(),
            taken=host.taken(),
        )
        kinds = ((wake.RUN_CALL, found.calls), (wake.RUN_TURN, found.turns), (wake.RUN_SESSION, found.sessions))
        for kind, rows in kinds:
            for tenant, row in rows:
                host.offer(kind, tenant, row)


def _shown(server: ServerStatus) -> dict[str, Any]:
    """What a node's row says of one of its servers."""
    told = {"tool": str(server.tool_id), "state": server.state, "why": server.reason[:500]}
    return told | {"starts": server.starts, "pid": server.pid}
