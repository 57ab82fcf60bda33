"""Which kill switch is on for a piece of work. Read under the gate (MACHINES 2)."""

from django.db.models import Q

from catalog.models import KillSwitch, Scope


def over_agent(agent: str) -> KillSwitch | None:
    """The switch that stops this agent or its whole tenant, if one is on."""
    covers = Q(scope=Scope.TENANT) | Q(scope=Scope.AGENT, target=agent)
    return KillSwitch.objects.filter(covers, off_at__isnull=True).first()


def over_call(*, agent: str, tool: str, function: str) -> KillSwitch | None:
    """The switch that stops a call of this function by this agent, if one is on."""
    covers = (
        Q(scope=Scope.TENANT)
        | Q(scope=Scope.AGENT, target=agent)
        | Q(scope=Scope.TOOL, target=tool)
        | Q(scope=Scope.FUNCTION, target=f"{tool}.{function}")
    )
    return KillSwitch.objects.filter(covers, off_at__isnull=True).first()
