"""Why a queued call does not move, in one sentence, from what the database knows at this moment."""

from datetime import datetime

from catalog.models import Tool
from catalog.queries import switches
from jobs.models import Attempt, Call, Job, Node
from jobs.rules.limits import MAX_OPENINGS
from jobs.rules.states import JobState, NodeState


def why_not_moving(job: Job, call: Call, now: datetime) -> str:
    """The first thing that stands in the way of a queued call; demands an open read of its tenant."""
    if job.state == JobState.CANCELLING:
        return "Its job is being stopped."
    switch = switches.over_call(agent=job.agent_name, tool=call.tool_slug, function=call.function_name)
    if switch is not None:
        return f"A kill switch is on for this {switch.scope}: it will not start."
    alive = Node.objects.filter(state=NodeState.ALIVE).count()
    if alive == 0:
        return "No node is alive: it starts when one comes back."
    if call.openings_failed:
        failed = f"The tool's server would not start ({call.openings_failed} of {MAX_OPENINGS} times)."
        return f"{failed} {call.detail}".strip()
    if call.due_at is not None and call.due_at > now:
        return "Its time has not come yet."
    tool = Tool.objects.filter(pk=call.function.tool_id).first() if call.function else None
    if tool is not None:
        busy = Attempt.objects.filter(call__tool_slug=call.tool_slug, ended_at__isnull=True).count()
        if busy >= tool.slots * alive:
            return f"All {tool.slots * alive} slots of this tool are taken."
        if tool.down_reason:
            return f"The tool's server is down: {tool.down_reason}"
    return "A node takes it within a second."
