"""What a policy can name: the functions that are listed now, and the agents. Read inside an open transaction."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from base import prepared
from catalog.models import Agent, Function, Stage
from catalog.queries import policies
from catalog.queries.trust import Approved, approved_entries, traits_by
from catalog.rules.policy import Policy
from catalog.rules.policy_coverage import Coverage, Entry, cover

_LISTED: Final = (
    *("id", "name", "annotations", "meta", "entry_digest", "tool"),
    *("tool__id", "tool__slug", "tool__transport", "tool__connection", "tool__url"),
)
_KEY: Final = """
SELECT g.version, date_trunc('minute', oz0_now()), ARRAY(SELECT l.id FROM catalog_listing l
    JOIN catalog_tool t ON t.id = l.tool_id JOIN catalog_pluginversion v ON v.id = t.plugin_version_id
    WHERE l.current AND v.stage = %s ORDER BY l.id),
    ARRAY(SELECT id FROM catalog_pluginversion WHERE stage = %s ORDER BY id)
FROM tenants_gate g
"""


def functions_now() -> list[Function]:
    """The functions of the current plugins' newest listings, by tool and name, without their schemas."""
    found = Function.objects.filter(listing__current=True, tool__plugin_version__stage=Stage.CURRENT)
    return list(found.select_related("tool").only(*_LISTED).order_by("tool__slug", "name"))


def agents_now() -> list[str]:
    """The names of the current plugins' agents."""
    found = Agent.objects.filter(plugin_version__stage=Stage.CURRENT).order_by("name")
    return list(dict.fromkeys(found.values_list("name", flat=True)))


@dataclass(frozen=True, slots=True)
class Ground:
    """What a policy is laid over, read once. Laying it takes no transaction: it may be hundreds of rules on thousands
    of functions, and a transaction that only waits for its process is ended (MACHINES 2).
    """

    functions: tuple[Function, ...]
    entries: tuple[Entry, ...]
    agents: tuple[str, ...]
    approved: Approved
    now: datetime

    def under(self, policy: Policy) -> Coverage:
        """A policy laid over it."""
        return cover(policy, self.entries, self.agents, self.now)


def ground(now: datetime) -> Ground:
    """The functions and agents that there are. Demands an open read."""
    functions = functions_now()
    approved = approved_entries({function.tool_id: function.tool for function in functions}.values())
    entries = []
    for function in functions:
        traits = traits_by(function, approved)
        entries.append(Entry(function.tool.slug, function.name, traits.kind, traits.open_world))
    return Ground(tuple(functions), tuple(entries), tuple(agents_now()), approved, now)


def standing_key() -> tuple[int, tuple[UUID, ...], datetime] | None:
    """What everything told of functions and the policy depends on; None without a gate. Demands an open read.

    It is (the gate's version, the listings and plugin versions there are, a time): the gate moves with the policy and
    with approvals, the time with the minute in which a rule may end. Where no rule ends it moves after ten minutes all
    the same: a connection may lead elsewhere.
    """
    found = prepared.fetch_one(_KEY, [Stage.CURRENT, Stage.CURRENT])
    ends = any(rule.until is not None for rule in policies.in_force()[0].rules)
    if found is None:
        return None
    gate, minute, listings, versions = found
    return gate, (*listings, *versions), minute if ends else minute.replace(minute=minute.minute // 10 * 10)
