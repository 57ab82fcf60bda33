"""What every claim of a turn or of a harness session looks at first (RULES L7): a job's node, switch and agent."""

from uuid import UUID

from base import db
from catalog.queries import switches
from catalog.rules.agents import AgentSpec
from catalog.rules.kept_agents import Unreadable, from_json
from catalog.rules.switching import Mode
from jobs.models import Job, Node
from jobs.operations import cancel
from jobs.rules.states import JobState, NodeState
from jobs.rules.why import Why


def agent_for(job: Job, node_id: UUID) -> AgentSpec | None:
    """The agent of a job that this node may go on with; None when it may not now, or the job ends instead.

    The caller holds the gate and, alone, the job.
    """
    now = db.must_write()
    if not Node.objects.filter(pk=node_id, state=NodeState.ALIVE).exists():
        return None
    switch = switches.over_agent(job.agent_name)
    if switch is not None and switch.mode == Mode.PAUSE:
        return None
    if switch is not None:
        cancel.end(job, ends_as=JobState.CANCELED, reason=Why.KILL_SWITCH, now=now, detail=switch.reason)
        return None
    try:
        return from_json(job.agent.definition)
    except Unreadable as error:
        cancel.fail_for_agent(job, str(error), now=now)
        return None
