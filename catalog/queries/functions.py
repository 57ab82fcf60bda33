"""Which agents and functions there are now."""

from collections.abc import Iterable

from catalog.models import Agent, Function, Stage, Tool, Transport
from catalog.queries.trust import ever_approved
from catalog.rules.agents import from_json
from catalog.rules.grants import Name, model_name
from catalog.rules.grants import granted as grants_of


def current_agent(name: str) -> Agent | None:
    """The agent of this name in its plugin's current version."""
    return (
        Agent.objects.filter(name=name, plugin_version__stage=Stage.CURRENT)
        .order_by("plugin_version__plugin__name")
        .first()
    )


def granted(agent: Agent) -> dict[str, Function]:
    """The functions an agent may call, by the names its model uses.

    A tool of the agent's own plugin is the one of the agent's version, so a running job keeps what it started with;
    any other plugin's tool is the current one.
    """
    own = Tool.objects.filter(plugin_version_id=agent.plugin_version_id)
    others = Tool.objects.filter(plugin_version__stage=Stage.CURRENT).exclude(
        plugin_version__plugin_id=agent.plugin_version.plugin_id
    )
    tools = {tool.slug: tool for tool in [*others, *own]}
    listed = Function.objects.filter(tool__in=tools.values(), listing__current=True).select_related("tool")
    by_name = {Name(function.tool.slug, function.name): function for function in listed}
    wanted = grants_of(from_json(agent.definition).functions, by_name, unseen=unseen(tools.values(), by_name))
    return {model_name(name.tool, name.function): by_name[name] for name in wanted}


def unseen(tools: Iterable[Tool], listed: Iterable[Name]) -> frozenset[Name]:
    """Entries of remote listings that no person ever approved, in whatever shape (RULES C3)."""
    remote = {tool.slug: tool for tool in tools if tool.transport == Transport.URL}
    seen = ever_approved(remote.values())
    return frozenset(
        name for name in listed if name.tool in remote and (remote[name.tool].pk, name.function) not in seen
    )


def still_listed(function: Function) -> bool:
    """Whether a tool's server lists exactly this entry by its newest listing."""
    now = Function.objects.filter(tool_id=function.tool_id, listing__current=True, name=function.name)
    return now.filter(entry_digest=function.entry_digest).exists()


def listed_now(function: Function) -> Function | None:
    """The entry of this name in the newest listing of the same tool, however it is described there."""
    return Function.objects.filter(tool_id=function.tool_id, listing__current=True, name=function.name).first()
