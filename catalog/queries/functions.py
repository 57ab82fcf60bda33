"""Which agents and functions there are now."""

from catalog.models import Agent, Function, Stage, Tool
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
    wanted = grants_of(from_json(agent.definition).functions, by_name)
    return {model_name(name.tool, name.function): by_name[name] for name in wanted}
