"""What is put under load: the lab's functions on shared servers, nodes of which one is never killed, and pages."""

import random
import shutil
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from base import db
from catalog.models import PluginVersion
from catalog.operations import plugins
from tenants.rules.who import SYSTEM
from tests.faults.lab.companions import companion
from tests.faults.lab.nodes import OURS
from tests.faults.processes import family, lives
from tests.faults.stand import PATIENCE, ROOT, RunningNode, Services
from tests.faults.studios import free_port, said_by
from tests.waiting import until

TIMEOUT: Final = 20.0  # seconds a call may take: its server answers late when everything is busy
MANIFEST: Final = f"""
name: lab
version: "1.0.0"
tools:
  - {{id: stdio, mcp: [python, lab_server.py], timeout: {TIMEOUT}, cleanup: 1, slots: 32, startup: 60}}
agents: [agents/]
"""
AGENT: Final = """
name: {name}
model: rehearsal
instructions: Do as rehearsed.
functions: [stdio.*]
input: {{trial: "", plan: "{{}}"}}
rehearsal:
{turns}
  - say: "{{{{ last }}}}"
"""
CALL: Final = """
      - function: stdio.{function}
        arguments: {{trial: "{{{{ input.trial }}}}", plan: "{{{{ input.plan }}}}"}}"""
AGENTS: Final[dict[str, list[list[str]]]] = {
    "reader": [["look"]],
    "noter": [["note"]],
    "charger": [["charge"]],
    "wiper": [["wipe"]],
    "clerk": [["look"], ["note", "charge"]],
}


class LoadStand:
    """Made by `a_load_stand`. `survivor` lives from the beginning to the end; `others` are killed and born again."""

    def __init__(self, stand: Services, *, others: int) -> None:
        self.stand = stand
        self.ledger: Final = stand.home / "ledger.jsonl"
        self.counted: Final[Counter[str]] = Counter()
        self.port: Final = free_port()
        assert stand.nursery  # up first: it takes its time, and everything else would slow it down
        self.survivor = stand.fresh_node()  # not forked: its memory is all its own
        self.others: list[RunningNode] = []
        self._many = others
        self._serving = self._serve()
        self.web: Final = psutil.Process(self._serving.pid)

    def _serve(self) -> "subprocess.Popen[bytes]":
        words = [sys.executable, "-m", "studio.cli", "web", "--port", str(self.port)]
        with (self.stand.home / "web.log").open("w") as log:
            return subprocess.Popen(
                words, env=self.stand.env(), cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )

    def use_plugin(self) -> Path:
        """Register the plugin; the folder its servers run in."""
        folder = self.stand.home / "lab"
        (folder / "agents").mkdir(parents=True)
        shutil.copy(Path(__file__).with_name("lab_server.py"), folder)
        (folder / "oz0-plugin.yaml").write_text(MANIFEST)
        for name, turns in AGENTS.items():
            rehearsed = "\n".join(
                "  - call:" + "".join(CALL.format(function=function) for function in turn) for turn in turns
            )
            (folder / "agents" / f"{name}.yaml").write_text(AGENT.format(name=name, turns=rehearsed))
        plugins.register(tenant=self.stand.tenant, folder=folder, home=self.stand.home, actor=SYSTEM)
        with db.read(self.stand.tenant):
            return Path(PluginVersion.objects.get(plugin__name="lab").folder)

    def kill_one(self) -> None:
        """Kill a node that is not the survivor, as the kernel does, and let another take its place."""
        if self.others:
            victim = random.choice(self.others)
            self.others.remove(victim)
            if victim.lives():
                victim.kill()
                self.counted["nodes killed"] += 1
        self.tend()

    def tend(self) -> None:
        """Replace nodes that ended by themselves, which nobody asked them to."""
        for node in [node for node in self.others if not node.lives()]:
            self.others.remove(node)
            self.counted["nodes that ended by themselves"] += 1
        while len(self.others) < self._many:
            self.others.append(self.stand.young_node())

    def complaints(self) -> list[str]:
        """What must not have been: mistakes in logs, and processes that ended."""
        found = []
        for log in [*self.stand.home.glob("node-*.log"), self.stand.home / "web.log"]:
            text = log.read_text(errors="replace")
            if match := OURS.search(text):
                found.append(f"{log.name}: …{text[max(0, match.start() - 300) : match.end() + 2500]}")
        if not self.survivor.lives():
            found.append("the node that nobody killed has ended")
        if not lives(self.web):
            found.append("the process that serves pages has ended")
        if ended := self.counted["nodes that ended by themselves"]:
            found.append(f"{ended} nodes ended by themselves")
        return found

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Every process of the studio that runs just now, by what it is."""
        own = _servers(self.survivor)
        others = [node for node in self.others if node.lives()]
        return {
            "surviving node": [psutil.Process(self.survivor.pid)],
            "its server": own,
            "web": [self.web],
            "PostgreSQL": _below(self.stand.postgres.child, "postgres"),
            "broker": _below(self.stand.broker.child, "valkey-server"),
            "other nodes": [psutil.Process(node.pid) for node in others],
            "their servers": [process for node in others for process in _servers(node)],
        }

    def answers(self) -> bool:
        """Whether the pages are served."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=10) as answer:
                return int(answer.status) == 200
        except OSError:
            return False

    def end(self) -> None:
        """Let the pages go; nodes end with the stand."""
        self._serving.kill()
        self._serving.wait(10)


def _servers(node: RunningNode) -> list[psutil.Process]:
    try:
        return [one for one in node.family() if "lab_server.py" in (line := said_by(one)) and "guardian.py" not in line]
    except psutil.NoSuchProcess:
        return []


def _below(child: object, name: str) -> list[psutil.Process]:
    process = getattr(child, "process", None)
    assert process is not None, f"{name} does not run"
    return [one for one in family(process.pid) if said_by(one) and one.name() == name and not _passing(said_by(one))]


def _passing(line: str) -> bool:
    """PostgreSQL's workers that come for a moment and take what memory they are allowed."""
    return "autovacuum worker" in line or "parallel worker" in line


@contextmanager
def a_load_stand(stand: Services, *, others: int) -> Iterator[LoadStand]:
    """One that is ready: its server is listed, every node has registered."""
    made = LoadStand(stand, others=others)
    try:
        folder = made.use_plugin()
        with companion(stand.home, "provider", str(folder / "provider.sock"), str(made.ledger)) as provider:
            assert provider.stdout is not None and provider.stdout.readline() == "ready\n"
            made.tend()
            for node in [made.survivor, *made.others]:
                node.ready()
            stand.until_listed()
            until(made.answers, "the pages were never served", PATIENCE)
            yield made
    finally:
        made.end()
