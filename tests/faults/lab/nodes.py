"""The lab's nodes: born with a crash point or blind to some commits, killed, frozen and drained, and born again."""

import re
import signal
import time
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Final
from uuid import UUID

import psutil

from base import crash_points
from jobs.models import Node
from tests.faults.lab.node_side import LEASE, SAID, UNSEEN
from tests.faults.stand import RunningNode, Services

FROZEN: Final = LEASE + 2.0  # seconds: long enough to be taken for dead
ARMED: Final = 0.7  # the share of nodes that are born with a crash point
DRAIN: Final = "1"  # seconds
OURS: Final = re.compile(r"Traceback|error of ours")
POINTS: Final = tuple(point for point in crash_points.POINTS if not point.startswith("answer."))


class Nodes:
    """`counted` has how many were killed, frozen, drained, and ended at each crash point."""

    def __init__(self, stand: Services, dice: Random, *, many: int, steady: bool) -> None:
        self.counted: Final[Counter[str]] = Counter()
        self._stand = stand
        self._dice = dice
        self._many = many
        self._steady = steady
        self._alive: list[RunningNode] = []
        self._frozen: list[tuple[float, RunningNode]] = []
        self._armed: dict[int, str] = {}
        self._tried: Counter[str] = Counter()  # crash points that nodes were born with
        self._struck: dict[int, str] = {}  # process → what was done to it
        self._read: Counter[str] = Counter()  # log → bytes looked at

    def tend(self, *, armed: bool = True) -> None:
        """Let others take the place of those that have ended, and the frozen ones go on."""
        for node in [node for node in self._alive if not node.lives()]:
            self._alive.remove(node)
            self._ended(node)
        for thaws, node in [pair for pair in self._frozen if pair[0] <= time.monotonic()]:
            self._frozen.remove((thaws, node))
            _tell(node, signal.SIGCONT)
            self._alive.append(node)
        while len(self._alive) < self._many:
            self._bear(armed=armed)

    def _bear(self, *, armed: bool) -> None:
        env = {"OZ0_DRAIN": DRAIN}
        if armed and not self._steady:
            if self._dice.random() < ARMED:
                fewest = min(self._tried[point] for point in POINTS)
                point = self._dice.choice([point for point in POINTS if self._tried[point] == fewest])
                self._tried[point] += 1
                env[crash_points.VARIABLE] = f"{point}:{self._dice.choice((1, 2, 3, 5))}"
            if self._dice.random() < 0.5:
                env[UNSEEN] = f"0.08:{self._dice.randrange(10**6)}"
        node = self._stand.young_node(without="lab", **env)
        self._alive.append(node)
        if crash_points.VARIABLE in env:
            self._armed[node.pid] = env[crash_points.VARIABLE].partition(":")[0]

    def _ended(self, node: RunningNode) -> None:
        if node.pid not in self._struck:
            self._struck[node.pid] = f"crash:{self._armed[node.pid]}" if node.pid in self._armed else "by itself"
        self.counted[self._struck[node.pid]] += 1

    def strike(self, how: str, node_id: UUID | None) -> None:
        """Kill, freeze or drain the node of this row, or any."""
        pid = Node.objects.filter(pk=node_id).values_list("pid", flat=True).first()
        found = [node for node in self._alive if node.pid == pid] or self._alive
        node = self._dice.choice(found) if found else None
        if node is None or not node.lives():
            return
        self._struck[node.pid] = how
        match how:
            case "kill":
                _tell(node, signal.SIGKILL)
            case "freeze":
                _tell(node, signal.SIGSTOP)
                self._alive.remove(node)
                self._frozen.append((time.monotonic() + FROZEN, node))
                self.counted["freeze"] += 1
                self._armed.setdefault(node.pid, "")
            case "drain":
                _tell(node, signal.SIGTERM)

    def struck(self, pids: list[int]) -> frozenset[str]:
        """What was done to the nodes with these process ids."""
        return frozenset(self._struck[pid] for pid in pids if pid in self._struck)

    def complaints(self) -> list[str]:
        """What nodes have logged since the last time that says of itself to be a mistake of the product's."""
        found = []
        for log in self._stand.home.glob("node-*.log"):
            with log.open(errors="replace") as file:
                file.seek(self._read[log.name])
                text = file.read()
                self._read[log.name] = file.tell()
            self.counted.update(f"unseen:{name}" for name in re.findall(rf"{SAID} (\w+)", text))
            if match := OURS.search(text):
                found.append(f"{log.name}: …{text[max(0, match.start() - 300) : match.end() + 2500]}")
        return found

    def thaw(self) -> None:
        """Let every frozen node go on."""
        self._frozen = [(0.0, node) for _, node in self._frozen]


def _tell(node: RunningNode, number: signal.Signals) -> None:
    """Send a signal; one that has just ended at its crash point takes none, and is counted as ended by that."""
    with suppress(psutil.NoSuchProcess):
        node.ask(number)
