"""What a switch can be turned on over."""

from typing import assert_never

from catalog.models import Agent, Function, Tool
from catalog.rules.switching import Scope


def exists(scope: Scope, target: str) -> bool:
    """Whether there is anything of this name: a switch that is on and stops nothing would be trusted."""
    match scope:
        case Scope.TENANT:
            return target == ""
        case Scope.AGENT:
            return Agent.objects.filter(name=target).exists()
        case Scope.TOOL:
            return Tool.objects.filter(slug=target).exists()
        case Scope.FUNCTION:
            tool, _, function = target.partition(".")
            return Function.objects.filter(tool__slug=tool, name=function).exists()
        case never:
            assert_never(never)
