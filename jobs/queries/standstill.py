"""Why a queued call does not move, in one sentence, from what the database knows at this moment."""

from datetime import datetime
from typing import Final
from uuid import UUID

from catalog.models import KillSwitch, Tool
from catalog.queries import switches
from catalog.rules.switching import Mode, Scope
from jobs.models import Attempt, Call, Job, Node, Turn
from jobs.rules.limits import MAX_OPENINGS
from jobs.rules.states import JobState, NodeState, TurnState
from jobs.rules.why import RATE_FULL

NO_NODE: Final = "No node is alive: it starts when one comes back."


class Standstill:
    """Answers for the calls of one job within one open read; what calls share is looked up once."""

    def __init__(self, job: Job, now: datetime) -> None:
        self.job = job
        self.now = now
        self._alive: int | None = None
        self._switches: dict[tuple[str, str], KillSwitch | None] = {}
        self._tools: dict[UUID, Tool | None] = {}
        self._busy: dict[str, int] = {}

    def why(self, call: Call) -> str:
        """The first thing that stands in the way of a call that is queued or due."""
        if self.job.state == JobState.CANCELLING:
            return "Its job is being stopped."
        switch = self._switch(call)
        if switch is not None:
            return _held_by(switch)
        alive = self._nodes()
        if alive == 0:
            return NO_NODE
        if call.openings_failed:
            failed = f"The tool's server would not start ({call.openings_failed} of {MAX_OPENINGS} times)."
            return f"{failed} {call.detail}".strip()
        if call.due_at is not None and call.due_at > self.now:
            return call.detail if call.detail.startswith(RATE_FULL) else "Its time has not come yet."
        return self._about_its_tool(call, alive) or "A node takes it within a second."

    def why_no_turn(self) -> str:
        """Why the job's due turn is not asked; nothing when a node is about to."""
        if self.job.turn_due_at is None:
            return ""
        switch = switches.over_agent(self.job.agent_name)
        if switch is not None:
            return _held_by(switch)
        if self.no_turn_until is not None:
            busy = Turn.objects.filter(job=self.job, state=TurnState.BUSY).values_list("error", flat=True).first()
            return f"The model's provider did not answer, so it is asked again. {busy or ''}".strip()
        return "" if self._nodes() else NO_NODE

    @property
    def no_turn_until(self) -> datetime | None:
        """When the job's turn is due whose provider was busy; None when none waits for that."""
        due = self.job.turn_due_at
        return due if due is not None and due > self.now else None

    def _about_its_tool(self, call: Call, alive: int) -> str:
        tool = self._tool(call.function.tool_id) if call.function else None
        if tool is None:
            return ""
        if self._open_attempts(call.tool_slug) >= tool.slots * alive:
            return f"All {tool.slots * alive} slots of this tool are taken."
        return f"The tool's server is down: {tool.down_reason}" if tool.down_reason else ""

    def _nodes(self) -> int:
        if self._alive is None:
            self._alive = Node.objects.filter(state=NodeState.ALIVE).count()
        return self._alive

    def _switch(self, call: Call) -> KillSwitch | None:
        place = (call.tool_slug, call.function_name)
        if place not in self._switches:
            tool, function = place
            self._switches[place] = switches.over_call(agent=self.job.agent_name, tool=tool, function=function)
        return self._switches[place]

    def _tool(self, tool_id: UUID) -> Tool | None:
        if tool_id not in self._tools:
            self._tools[tool_id] = Tool.objects.filter(pk=tool_id).first()
        return self._tools[tool_id]

    def _open_attempts(self, slug: str) -> int:
        if slug not in self._busy:
            self._busy[slug] = Attempt.objects.filter(call__tool_slug=slug, ended_at__isnull=True).count()
        return self._busy[slug]


def _held_by(switch: KillSwitch) -> str:
    what = "the whole workspace" if switch.scope == Scope.TENANT else f"{switch.scope} {switch.target}"
    if switch.mode == Mode.KILL:
        return f"A kill switch is on for {what}: it will not start."
    why = f" ({switch.reason})" if switch.reason else ""
    return f"Paused: {what}{why}. It starts when the pause is lifted."
