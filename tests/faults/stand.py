"""A studio's services and a plugin for drills; its nodes are processes of their own, started and killed by the test."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import psycopg
from django.conf import settings
from django.db import connections

from approvals.operations.decide import Person, decide
from approvals.rules.deciding import Decider
from base import db
from catalog.models import Listing, Stage, Tool
from catalog.operations import plugins
from jobs.models import Attempt, Call, Hold, Job, Node, Starter
from jobs.operations import cancel, intake
from jobs.rules.states import JOB_FINAL, NodeState
from studio import celery, embedded
from tenants.rules.who import SYSTEM, Actor
from tests.builders import a_person, a_tenant
from tests.clusters import connected, seed
from tests.faults.processes import lives
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
DAY = 24 * 60  # minutes; what a job may take when its agent does not say
PATIENCE = 60.0  # seconds; for what takes one or two on an idle machine
OURS = ("OZ0_", "DATABASE_", "REDIS_", "BROKER_")

MANIFEST = """
name: billing
version: "1.0.0"
tools:
  - {{id: billing, mcp: [{words}], timeout: {timeout}, cleanup: 1, slots: {slots}}}
agents: [agents/]
"""
AGENT = """
name: {name}
model: rehearsal
instructions: Do as rehearsed.
functions: [billing.*]
limits: {{turns: 10, calls: 100, minutes: {minutes}}}
rehearsal:
{turns}
  - say: "{{{{ last }}}}"
"""
BALANCE = "{function: billing.balance, arguments: {account: A-1}}"
CHARGE = "{function: billing.charge, arguments: {account: A-1, order_id: o-1, amount: 5}}"
NOTE = "{function: billing.note, arguments: {account: A-1, text: once}}"
EXPORT = "{function: billing.export_ledger}"
AGENTS: dict[str, list[list[str]]] = {
    "three-kinds": [[BALANCE, CHARGE, NOTE]],
    "two-writes": [[CHARGE, NOTE]],
    "one-charge": [[CHARGE]],
    "one-export": [[EXPORT]],
    "careful": [[NOTE, NOTE], [NOTE], [EXPORT]],
    "fifty": [[EXPORT] * 50],
}


class RunningNode:
    """One node's process."""

    def __init__(self, pid: int, log: Path, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self.pid = pid
        self.log = log
        self._process = process  # None when it is the nursery's child
        self._seen = psutil.Process(pid)

    @property
    def row(self) -> Node:
        """Its latest row."""
        return Node.objects.filter(pid=self.pid).latest("started_at")

    def said(self, words: str) -> int:
        """How many lines of its log hold these words."""
        return sum(words in line for line in self.log.read_text().splitlines())

    def lives(self) -> bool:
        """Whether the process is there and no zombie."""
        return (self._process is None or self._process.poll() is None) and lives(self._seen)

    def ready(self) -> "RunningNode":
        """Wait until it has registered."""
        alive = Node.objects.filter(pid=self.pid, state=NodeState.ALIVE)
        until(lambda: alive.exists() or not self.lives(), "the node never registered", PATIENCE)
        assert self.lives(), self.log.read_text()
        return self

    def family(self) -> list[psutil.Process]:
        """Its servers and their guardians."""
        return self._seen.children(recursive=True)

    def kill(self) -> None:
        """End it as the kernel does when memory runs out: no last word, no clean-up."""
        self.ask(signal.SIGKILL)
        until(lambda: not self.lives(), "SIGKILL did not end it", 10)
        if self._process is not None:
            self._process.wait(10)

    def ask(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._seen.send_signal(number)

    def ended(self, seconds: float) -> int:
        """Wait for its end; its return code."""
        assert self._process is not None, "only a node that was not forked tells how it ended"
        return self._process.wait(seconds)


class Nursery:
    """A process that forks nodes (`tests/faults/nursery.py`)."""

    def __init__(self, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"],
            env=env,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._says("ready")

    def node(self, log: Path, without: str, env: dict[str, str]) -> RunningNode:
        """A new node's process."""
        return RunningNode(self.fork(log=str(log), without=without, env=env), log)

    def fork(self, **line: Any) -> int:
        """A new process; its id."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        return int(self._says())

    def end(self) -> None:
        """It forks no more."""
        self._process.communicate(timeout=PATIENCE)

    def _says(self, words: str = "") -> str:
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], PATIENCE)[0], "the nursery says nothing"
        said = self._process.stdout.readline().strip()
        assert said.startswith(words), said
        return said


class Stand:
    """A tenant with a person, and the plugin. Django must be `connected` to the studio's database."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.tenant = a_tenant("drills")
        self.person = a_person(self.tenant)
        self.address = ""  # of the studio's web process, when the test has one; set it before the first node
        self._nodes: list[RunningNode] = []
        self._nursery: Nursery | None = None

    # --- processes -----------------------------------------------------------------------------------------------

    def env(self) -> dict[str, str]:
        """The environment of a process of this studio; the services' addresses are in its state folder."""
        rest = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        # one key for all processes of a studio, and this is one of them: a node opens what is put into the vault here
        ours = {"OZ0_HOME": str(self.home), "OZ0_SECRET_KEY": settings.SECRET_KEY, "PYTHONUNBUFFERED": "1"}
        return rest | ours | ({"OZ0_URL": self.address} if self.address else {})

    @property
    def nursery(self) -> Nursery:
        """Where this stand's nodes are forked."""
        if self._nursery is None:
            self._nursery = Nursery(self.env())
        return self._nursery

    def node(self, *, without: str = "") -> RunningNode:
        """Start a node that is up in a moment, if need be without one of its guards (`tests/faults/without.py`)."""
        return self.young_node(without=without).ready()

    def young_node(self, *, without: str = "", **env: str) -> RunningNode:
        """Start a node with more in its environment, and do not wait for it."""
        self._nodes.append(self.nursery.node(self._log(), without, env))
        return self._nodes[-1]

    def fresh_node(self) -> RunningNode:
        """Start `oz0 node` as anybody would; it is not waited for, and tells how it ended."""
        words = [sys.executable, "-m", "studio.cli", "node"]
        with self._log().open("w") as out:
            process = subprocess.Popen(words, env=self.env(), cwd=ROOT, stdout=out, stderr=out, start_new_session=True)
        self._nodes.append(RunningNode(process.pid, self._log(), process))
        return self._nodes[-1]

    def _log(self) -> Path:
        return self.home / f"node-{len(self._nodes) + 1}.log"

    def kill_nodes(self) -> None:
        """Kill every node that still runs."""
        for node in self._nodes:
            if node.lives():
                node.kill()

    def end(self) -> None:
        """Kill what still runs, and show its log in case the test failed."""
        self.kill_nodes()
        if self._nursery is not None:
            self._nursery.end()
        for node in self._nodes[-2:]:
            print(f"--- {node.log.name}", *node.log.read_text().splitlines()[-40:], sep="\n")

    # --- the plugin ----------------------------------------------------------------------------------------------

    def use_plugin(
        self,
        *flags: str,
        timeout: float = 5,
        slots: int = 16,
        minutes: int = DAY,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Make billing, watched, the tenant's plugin. `flags` are those of `tests/servers/watched_billing.py`.

        `timeout` is in seconds; `minutes` is how long a job of it may take. `files` are what else lies in its folder.
        """
        folder = self.home / "source"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "agents").mkdir(parents=True)
        for file in [*(ROOT / "examples" / "billing").glob("*.py"), ROOT / "tests" / "servers" / "watched_billing.py"]:
            shutil.copy(file, folder)
        words = ["python", "watched_billing.py", "--state", "{{ home }}/demo/billing", *flags]
        quoted = ", ".join(json.dumps(word) for word in words)
        (folder / "oz0-plugin.yaml").write_text(MANIFEST.format(words=quoted, timeout=timeout, slots=slots))
        for name, turns in AGENTS.items():
            text = "".join(f"  - call: [{', '.join(calls)}]\n" for calls in turns)
            (folder / "agents" / f"{name}.yaml").write_text(
                AGENT.format(name=name, turns=text.rstrip(), minutes=minutes)
            )
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
        plugins.register(tenant=self.tenant, folder=folder, home=self.home, actor=SYSTEM)

    def until_listed(self) -> None:
        """Wait until a node has read what the current plugin's server lists."""

        def listed() -> bool:
            with db.read(self.tenant):
                current = Tool.objects.filter(plugin_version__stage=Stage.CURRENT)
                return Listing.objects.filter(tool__in=current, current=True).exists()

        until(listed, "the plugin was never listed", PATIENCE)

    def drill(self, **words: Any) -> None:
        """What the functions suffer from now on (`examples/billing/billing_drill.py`)."""
        self.state.mkdir(parents=True, exist_ok=True)
        fresh = self.state / "drill.new"
        fresh.write_text(json.dumps(words))
        fresh.replace(self.state / "drill.json")

    @property
    def state(self) -> Path:
        """The server's state folder."""
        return self.home / "demo" / "billing"

    def ledger(self) -> Counter[str]:
        """How many lines the ledger has under each key."""
        return Counter(line["key"] for line in _lines(self.state / "ledger.jsonl"))

    def journal(self, what: str) -> list[dict[str, Any]]:
        """The server's own record of calls that have `begun` or `ended`."""
        return [line for line in _lines(self.state / "journal.jsonl") if line["what"] == what]

    def begun(self) -> Counter[str]:
        """How often a call of each key has reached a server."""
        return Counter(line["key"] for line in self.journal("begun"))

    # --- work ----------------------------------------------------------------------------------------------------

    def start(self, agent: str, **given: Any) -> UUID:
        """A job that a person starts, with this input."""
        return intake.start_job(
            tenant=self.tenant, agent=agent, given=given, starter=Starter.PERSON, person=self.person, title="A drill"
        )

    def cancel(self, job: UUID) -> None:
        """A person cancels a job."""
        cancel.cancel_job(tenant=self.tenant, job_id=job, by=Actor("pat", "link, 127.0.0.1", self.person))

    def job(self, job: UUID) -> Job:
        """A job as it is now."""
        with db.read(self.tenant):
            return Job.objects.get(pk=job)

    def calls(self, *jobs: UUID) -> list[Call]:
        """The calls of these jobs, in order."""
        with db.read(self.tenant):
            return list(Call.objects.filter(job_id__in=jobs).order_by("job_id", "activity"))

    def call(self, job: UUID, function: str) -> Call:
        """The job's only call of a function."""
        (found,) = [call for call in self.calls(job) if call.function_name == function]
        return found

    def attempts(self, *calls: Call) -> list[Attempt]:
        """The attempts of these calls, in order."""
        with db.read(self.tenant):
            return list(Attempt.objects.filter(call__in=calls).order_by("call_id", "number"))

    def open_attempts(self, *jobs: UUID) -> list[Attempt]:
        """The attempts of these jobs, or of all, that nobody has closed."""
        with db.read(self.tenant):
            found = Attempt.objects.filter(ended_at__isnull=True)
            return list((found.filter(job_id__in=jobs) if jobs else found).select_related("call"))

    def holds(self, *jobs: UUID) -> list[Hold]:
        """The open questions of these jobs."""
        with db.read(self.tenant):
            return list(Hold.objects.filter(job_id__in=jobs, closed_at__isnull=True).order_by("opened_at"))

    def answer(self, hold: Hold, said: str) -> None:
        """A person answers a question."""
        who = Person(Decider(self.person, "admin"), Actor("pat", "link, 127.0.0.1", self.person))
        decide(tenant=self.tenant, hold_id=hold.pk, person=who, answer=said)

    def nodes(self) -> list[Node]:
        """Every node there ever was, oldest first."""
        return list(Node.objects.order_by("started_at"))

    def until_over(self, *jobs: UUID, seconds: float = PATIENCE) -> None:
        """Wait until these jobs have ended."""

        def over() -> bool:
            with db.read(self.tenant):
                return not Job.objects.filter(pk__in=jobs).exclude(state__in=JOB_FINAL).exists()

        until(over, "a job never ended", seconds)


class Services(Stand):
    """A stand on services of its own. Nothing runs on them until a node is started."""

    def __init__(self, home: Path, postgres: embedded.Postgres, broker: embedded.Valkey) -> None:
        super().__init__(home)
        self.postgres = postgres
        self.broker = broker

    def lose_database(self, *, kill: bool = False) -> None:
        """End PostgreSQL, in order or not, and with it every connection to it, also this process's own."""
        (self.postgres.kill if kill else self.postgres.stop)()
        connections["default"].close()

    def move_clock(self, seconds: float) -> None:
        """Move the database's clock ahead. Nodes that run meanwhile may take each other for silent."""
        with psycopg.connect(self.postgres.url_admin, autocommit=True) as admin:
            admin.execute("UPDATE oz0_clock SET ahead = ahead + %s", [timedelta(seconds=seconds)])


@contextmanager
def waking(url: str) -> Iterator[None]:
    """This process's own messages go to this broker, as those of the web's process do."""
    app = celery.WakingCelery("drill", broker=url, set_as_current=False)
    app.conf.update(celery.CONFIGURATION)
    app.set_current()
    try:
        yield
    finally:
        app.close()
        celery.app.set_current()


@contextmanager
def a_stand(folder: Path) -> Iterator[Services]:
    """A stand with its services."""
    seed(folder)
    with embedded.valkey(folder, keep=False) as broker, embedded.postgres(folder, keep=False) as postgres:
        with connected(postgres.url_app), waking(broker.url_broker):
            stand = Services(folder, postgres, broker)
            try:
                yield stand
            finally:
                stand.end()


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
