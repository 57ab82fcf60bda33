"""The laboratory: a stand with the lab's plugin, provider, far servers and nodes, in which many trials run at once."""

import json
import select
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import redis
from django.test import Client

from base import crash_points, db, ids
from catalog.models import Credential, Function, Listing, PluginVersion, Scope, Tool
from catalog.operations import connections, plugins
from catalog.operations.approving import approve
from catalog.operations.connections import Given
from jobs.models import Attempt, Call, Event, Hold, Job, JobCounter, Starter
from jobs.operations import intake, switches
from jobs.operations.holds import BadAnswer
from jobs.rules.states import CALL_FINAL, JOB_FINAL
from tenants.models import User
from tenants.rules.who import SYSTEM, Actor
from tests.faults.lab import node_side
from tests.faults.lab.bulk import made_of
from tests.faults.lab.classes import KINDS, SERVERS
from tests.faults.lab.companions import companion
from tests.faults.lab.course import Course, Means, Seen, cancel_as, digest_of
from tests.faults.lab.draw import TIMEOUT, Trial, drawn
from tests.faults.lab.evidence import Evidence, Line, Noted
from tests.faults.lab.invariants import Violation, broken
from tests.faults.lab.nodes import Nodes
from tests.faults.lab.wire import OTHERS
from tests.faults.stand import PATIENCE, Services
from tests.waiting import until

TICK: Final = 0.1  # seconds between two looks at everything
FLUSHED_EVERY: Final = 15.0  # seconds, about; every message under way is lost then
SWITCHED: Final = 1.0  # seconds that a kill switch stays on
REFUSED: Final = 1.0  # seconds in which nobody listens
DIES_OVER_IT: Final = 0.25  # the share of answers that are given by a process which dies over its commit
MANIFEST: Final = f"""
name: lab
version: "1.0.0"
tools:
  - {{id: stdio, mcp: [python, lab_server.py], timeout: {TIMEOUT}, cleanup: 1, slots: 32, startup: 30}}
  - {{id: box, mcp: [python, lab_server.py], sandbox: {{}}, timeout: {TIMEOUT}, cleanup: 1, slots: 32, startup: 30}}
  - {{id: modern, url: /mcp, connection: modern, timeout: {TIMEOUT}, cleanup: 1, slots: 32, startup: 10}}
  - {{id: legacy, url: /mcp, connection: legacy, timeout: {TIMEOUT}, cleanup: 1, slots: 32, startup: 10}}
agents: [agents/]
"""
AGENT: Final = """
name: {server}-{function}
model: rehearsal
instructions: Do as rehearsed.
functions: [{server}.*]
input: {{trial: "", plan: "{{}}"}}
rehearsal:
  - call:
      - function: {server}.{function}
        arguments: {{trial: "{{{{ input.trial }}}}", plan: "{{{{ input.plan }}}}"}}
  - say: "{{{{ last }}}}"
"""


@dataclass(frozen=True, slots=True)
class Done:
    """A trial that is over, and what of its evidence is wrong."""

    trial: Trial
    job: UUID
    state: str
    effect: str
    attempts: int
    seconds: float
    hit: frozenset[str]
    violations: tuple[Violation, ...]
    evidence: Evidence


@dataclass(slots=True)
class Results:
    """What a run found. `complaints` are mistakes that nodes have logged of themselves."""

    seed: int
    seconds: float = 0.0
    done: list[Done] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)

    @property
    def violations(self) -> list[tuple[Done, Violation]]:
        """Everything that must hold and did not."""
        return [(done, violation) for done in self.done for violation in done.violations]


class Laboratory:
    """Made by `a_laboratory`. `many` nodes run at once; when `steady`, only what trials ask for happens to them."""

    def __init__(self, stand: Services, seed: int, *, many: int = 2, steady: bool = False) -> None:
        self.stand = stand
        self.results = Results(seed)
        self.ledger = stand.home / "ledger.jsonl"
        self._dice = Random(f"{seed}/weather")
        self.nodes = Nodes(stand, self._dice, many=many, steady=steady)
        self._live: dict[UUID, Course] = {}
        self._by_name: dict[str, Course] = {}
        self._read = 0
        self._deaf: list[tuple[str, float, float]] = []  # when a server could not be told anything
        self._ports: dict[str, int] = {}
        self._far: subprocess.Popen[str] | None = None
        self._client = Client()
        self._means = Means(self.nodes.strike, self._refuse, self._answer, self._cancel, self._switch)
        self._switches: list[tuple[float, UUID]] = []  # when each is turned off again
        self._flush_at = time.monotonic() + FLUSHED_EVERY
        self._redis = redis.Redis.from_url(stand.broker.url)

    # --- what it consists of -------------------------------------------------------------------------------------

    @contextmanager
    def open(self) -> Iterator[None]:
        """Start everything, and have it listed and approved."""
        self._client.force_login(User.objects.get(pk=self.stand.person))
        self._write_plugin()
        sock = self.stand.home / "far" / "provider.sock"
        sock.parent.mkdir()
        with companion(self.stand.home, "far", str(sock)) as self._far:
            assert self._far.stdout is not None
            self._ports = json.loads(self._far.stdout.readline())
            folder = self._register()
            words = (str(folder / "provider.sock"), str(self.ledger))
            with companion(self.stand.home, "provider", *words) as provider:
                assert provider.stdout is not None and provider.stdout.readline() == "ready\n"
                sock.symlink_to(folder / "provider.sock")
                self.nodes.tend(armed=False)
                self._approve()
                yield

    def _write_plugin(self) -> None:
        folder = self.stand.home / "lab"
        (folder / "agents").mkdir(parents=True)
        shutil.copy(Path(__file__).with_name("lab_server.py"), folder)
        (folder / "oz0-plugin.yaml").write_text(MANIFEST)
        for server in SERVERS:
            for function in KINDS:
                text = AGENT.format(server=server, function=function)
                (folder / "agents" / f"{server}-{function}.yaml").write_text(text)

    def _register(self) -> Path:
        tenant = self.stand.tenant
        for name, port in self._ports.items():
            given = {"allowed": [f"127.0.0.1:{port}"], "given": Given(Credential.NONE), "actor": SYSTEM}
            connections.make(tenant=tenant, name=name, url=f"http://127.0.0.1:{port}/mcp", **given)
        plugins.register(tenant=tenant, folder=self.stand.home / "lab", home=self.stand.home, actor=SYSTEM)
        with db.read(tenant):
            return Path(PluginVersion.objects.get(plugin__name="lab").folder)

    def _approve(self) -> None:
        tenant = self.stand.tenant

        def listed() -> bool:
            with db.read(tenant):
                return Listing.objects.filter(tool__in=Tool.objects.all(), current=True).count() == len(SERVERS)

        until(listed, "the lab's tools were never listed", PATIENCE)
        for tool in self._ports:
            with db.read(tenant):
                rows = Function.objects.filter(tool__slug=tool, listing__current=True)
                shown = dict(rows.values_list("name", "entry_digest"))
            approve(tenant=tenant, tool=tool, shown=shown, actor=Actor("pat", "link", self.stand.person))

    # --- trials --------------------------------------------------------------------------------------------------

    def run(self, seconds: float, *, every: float, side_by_side: int) -> Results:
        """Begin a trial `every` so many seconds, at most so many at once; then let all come to their end."""
        began = time.monotonic()
        number, next_at = 0, began
        while (now := time.monotonic()) < began + seconds or self._live:
            if now < began + seconds and now >= next_at and len(self._live) < side_by_side:
                number, next_at = number + 1, max(next_at + every, now - every)
                self.begin(drawn(self.results.seed, number))
            if now >= began + seconds:
                self.nodes.thaw()
            self._tick(armed=now < began + seconds)
        return self._closed(began)

    def repeat(self, trials: list[Trial]) -> Results:
        """Run these, all at once."""
        began = time.monotonic()
        for trial in trials:
            self.begin(trial)
        while self._live:
            self._tick(armed=False)
        return self._closed(began)

    def begin(self, trial: Trial) -> None:
        """Start a trial's job."""
        name = str(len(self._by_name) + 1)
        job = intake.start_job(
            tenant=self.stand.tenant,
            agent=f"{trial.server}-{trial.function}",
            given={"trial": name, "plan": json.dumps(trial.plan)},
            starter=Starter.PERSON,
            person=self.stand.person,
            title=str(trial),
        )
        self._live[job] = self._by_name[name] = Course(trial, job, self._means)

    def _tick(self, *, armed: bool) -> None:
        select.select([], [], [], TICK)
        self._read_ledger()
        self.nodes.tend(armed=armed)
        self._turn_off()
        if armed and time.monotonic() >= self._flush_at:
            self._flush_at = time.monotonic() + self._dice.uniform(0.5, 1.5) * FLUSHED_EVERY
            self._redis.flushall()
            self.results.counted["broker flushed"] += 1
        for job, seen in self._look().items():
            course = self._live[job]
            course.step(seen)
            if course.over:
                del self._live[job]
                self.results.done.append(self._judged(course, seen))

    def _closed(self, began: float) -> Results:
        self.results.seconds = time.monotonic() - began
        self.results.complaints = self.nodes.complaints()
        self.results.counted += self.nodes.counted
        return self.results

    def _look(self) -> dict[UUID, Seen]:
        with db.read(self.stand.tenant):
            seen = {job.pk: Seen(job) for job in Job.objects.filter(pk__in=list(self._live))}
            for call in Call.objects.filter(job_id__in=seen):
                seen[call.job_id].call = call
            for attempt in Attempt.objects.filter(job_id__in=seen, ended_at__isnull=True):
                seen[attempt.job_id].open = attempt
            for hold in Hold.objects.filter(job_id__in=seen, closed_at__isnull=True):
                seen[hold.job_id].hold = hold
        return seen

    def _read_ledger(self) -> None:
        with self.ledger.open() as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole)
        for raw in whole.splitlines():
            line = json.loads(raw)
            found = Line(line["at"], line["what"], line["key"], line["digest"], line.get("resume"), line.get("step"))
            course = self._by_name[line["trial"]]
            course.lines.append(found)
            if found.what == "received" and course.trial.fault.startswith("other"):
                self._deaf.append((course.trial.server, found.at - TICK, found.at + OTHERS + TICK))

    # --- what trials act with ------------------------------------------------------------------------------------

    def _refuse(self, server: str) -> None:
        assert self._far is not None and self._far.stdin is not None
        self._deaf.append((server, time.monotonic(), time.monotonic() + 2 * REFUSED))
        self._far.stdin.write(f"refuse {self._ports[server]} {REFUSED}\n")
        self._far.stdin.flush()

    def _cancel(self, job: UUID) -> None:
        cancel_as(self.stand.person, self.stand.tenant, job)

    def _switch(self, function: str) -> None:
        switch = switches.turn_on(
            tenant=self.stand.tenant, scope=Scope.FUNCTION, target=function, reason="a drill", by=SYSTEM
        )
        self._switches.append((time.monotonic() + SWITCHED, switch))

    def _turn_off(self) -> None:
        for off_at, switch in [pair for pair in self._switches if pair[0] <= time.monotonic()]:
            self._switches.remove((off_at, switch))
            switches.turn_off(tenant=self.stand.tenant, switch_id=switch, by=SYSTEM)

    def _answer(self, hold: Hold, said: str) -> None:
        words = {"tenant": str(self.stand.tenant), "hold": str(hold.pk), "person": self.stand.person, "said": said}
        if self._dice.random() >= DIES_OVER_IT:
            with suppress(BadAnswer):  # "run it again" under a switch; the person comes back to it
                node_side.answer(**words)
            return
        how = self._dice.choice(["before_commit", "after_commit", "unseen"])
        self.results.counted["unseen:answer" if how == "unseen" else f"crash:answer.{how}"] += 1
        env = {node_side.UNSEEN: "1.0:1"} if how == "unseen" else {crash_points.VARIABLE: f"answer.{how}"}
        log = str(self.stand.home / "answers.log")
        self.stand.nursery.fork(log=log, without="lab", env=env, run="tests.faults.lab.node_side:answer", **words)

    # --- what came of it -----------------------------------------------------------------------------------------

    def _judged(self, course: Course, seen: Seen) -> Done:
        evidence = self._evidence(course, seen)
        violations = broken(evidence)
        attempts = len(evidence.attempts)
        seconds = time.monotonic() - course.began
        state, effect = evidence.state, evidence.effect
        return Done(
            course.trial, course.job, state, effect, attempts, seconds, evidence.hit, tuple(violations), evidence
        )

    def _evidence(self, course: Course, seen: Seen) -> Evidence:
        job, call = seen.job, seen.call
        if call is None:
            return Evidence(course.trial, "", "", "never submitted", "none", False, job.state, False, False)
        with db.read(self.stand.tenant):
            attempts = list(Attempt.objects.filter(call=call).select_related("node").order_by("number"))
            answers = list(Hold.objects.filter(call=call).exclude(answer="").values_list("answer", flat=True))
            events = list(Event.objects.filter(job_id=job.pk).order_by("seq"))
            counted = JobCounter.objects.get(job_id=job.pk).events
        name = next(name for name, one in self._by_name.items() if one is course)
        return Evidence(
            trial=course.trial,
            key=call.key,
            digest=digest_of(course.trial, name),
            state=call.state,
            effect=call.effect,
            final=call.state in CALL_FINAL,
            job_state=job.state,
            job_over=job.state in JOB_FINAL,
            asked=seen.hold is not None,
            attempts=tuple(made_of(attempt) for attempt in attempts),
            answers=tuple(answers),
            events=tuple(Noted(event.seq, event.kind, event.call == call.pk, event.data) for event in events),
            counted=counted,
            ledger=tuple(course.lines),
            canceled_at=course.canceled_at,
            call_page=self._page(f"/calls/{ids.show(ids.CALL, call.pk)}/"),
            job_page=self._page(f"/jobs/{ids.show(ids.JOB, job.pk)}/"),
            deaf=self._was_deaf(course),
            hit=self.nodes.struck([attempt.node.pid for attempt in attempts]),
        )

    def _was_deaf(self, course: Course) -> bool:
        if not course.lines:
            return False
        began, ended = course.lines[0].at, course.lines[-1].at
        return any(server == course.trial.server and a < ended and b > began for server, a, b in self._deaf)

    def _page(self, address: str) -> str:
        answer = self._client.get(address)
        return answer.content.decode() if answer.status_code == 200 else f"status {answer.status_code}"


@contextmanager
def a_laboratory(stand: Services, seed: int, **more: Any) -> Iterator[Laboratory]:
    """A laboratory that is open."""
    made = Laboratory(stand, seed, **more)
    with made.open():
        yield made
