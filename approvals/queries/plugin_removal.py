"""What removing a plugin would do, counted before anybody does it."""

from dataclasses import dataclass
from uuid import UUID

from base import db
from catalog.models import Agent, Plugin, PluginVersion, Stage, Tool
from catalog.queries.kept_agents import kept_agents
from jobs.models import Call, Job
from jobs.rules.states import JOB_FINAL, CallState

WAITING = (CallState.QUEUED, CallState.RETRYING, CallState.HELD)
RUNNING = (CallState.RUNNING, CallState.CANCELLING)


@dataclass(frozen=True, slots=True)
class Removal:
    """What leaves the catalog with a plugin, and the work that it touches. `others` are agents of other plugins."""

    name: str
    tools: tuple[str, ...]
    agents: tuple[str, ...]
    jobs: int
    running: int
    waiting: int
    others: tuple[str, ...]


def removal(tenant: UUID, name: str) -> Removal | None:
    """What removing this plugin would do now; None when it is not in the catalog."""
    with db.read(tenant):
        plugin = Plugin.objects.filter(name=name, removed_at__isnull=True).first()
        if plugin is None:
            return None
        current = PluginVersion.objects.filter(plugin=plugin, stage=Stage.CURRENT)
        tools = tuple(Tool.objects.filter(plugin_version__in=current).order_by("slug").values_list("slug", flat=True))
        agents = Agent.objects.filter(plugin_version__in=current).order_by("name")
        calls = Call.objects.filter(function__tool__plugin_version__plugin=plugin)
        jobs = Job.objects.filter(agent__plugin_version__plugin=plugin).exclude(state__in=JOB_FINAL)
        others = [
            one.name
            for one in kept_agents().readable
            if one.plugin != name and {grant.partition(".")[0] for grant in one.spec.functions} & set(tools)
        ]
        return Removal(
            name=name,
            tools=tools,
            agents=tuple(agents.values_list("name", flat=True)),
            jobs=jobs.count(),
            running=calls.filter(state__in=RUNNING).count(),
            waiting=calls.filter(state__in=WAITING).count(),
            others=tuple(others),
        )
