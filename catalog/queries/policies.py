"""The policy in force. Read under the gate (MACHINES 2)."""

from catalog.models import PolicyVersion
from catalog.rules.policy import Policy


def in_force() -> tuple[Policy, int]:
    """The newest policy of the tenant and its number; the studio's defaults are number 0."""
    newest = PolicyVersion.objects.order_by("-number").first()
    return (Policy.read(newest.rules), newest.number) if newest else (Policy(), 0)
