"""Every listed function in a line each, kept in the process: what lists, filters and counts are made from.

Rows of a listing never change, so what is kept is right for as long as its key is: the tenant's gate moves with the
policy and with approvals, the ids of the listings with what is listed, the minute with a rule's end.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast, Left

from base import db
from catalog.models import Function, Stage, Tool, Transport
from catalog.queries import policies
from catalog.queries.policy_entries import agents_now, standing_key
from catalog.queries.policy_waiting import Show, sort_of
from catalog.queries.trust import approved_entries, ever_approved
from catalog.rules.estimates import ONE_IS_LONG, Definition, estimate
from catalog.rules.kinds import Kind, Traits, traits_of
from catalog.rules.policy_coverage import Entry, cover

SHORT: Final = 160  # characters of a description that a list shows
_SAID: Final = 4_096  # different hints that a process keeps in mind
_REMEMBERED: Final = 32  # tenants whose functions a process keeps in mind, at some 300 bytes a function


@dataclass(frozen=True, slots=True)
class Indexed:
    """One listed function. `fares` is what becomes of its calls by the policy, `unapproved` that it is an entry of a
    remote listing that no standing approval covers, `never_approved` that no entry of its
    name ever was."""

    id: UUID
    plugin: str
    tool: str
    name: str
    does: str
    traits: Traits
    fares: Show
    tokens: int
    unapproved: bool
    never_approved: bool

    @property
    def label(self) -> str:
        """`tool.function`, which names it everywhere."""
        return f"{self.tool}.{self.name}"

    @property
    def long(self) -> bool:
        """Whether its definition alone is worth a warning (RULES T2)."""
        return self.tokens > ONE_IS_LONG

    @property
    def undeclared(self) -> bool:
        """Whether nobody knows what it does (RULES A1)."""
        return self.traits.kind is Kind.UNDECLARED


def functions_of(tenant: UUID) -> tuple[Indexed, ...]:
    """The functions of the current plugins' newest listings, by tool and name."""
    with db.read(tenant):
        key = standing_key()
    return _functions(tenant, *key) if key else ()


def holding(tenant: UUID) -> tuple[int, int]:
    """(functions whose every call waits for a person, functions there are)."""
    found = functions_of(tenant)
    return sum(one.fares is Show.WAITS for one in found), len(found)


def is_listed(tenant: UUID, label: str) -> bool:
    """Whether `tool.function` names a function."""
    return "." in label and any(one.label == label for one in functions_of(tenant))


@lru_cache(_REMEMBERED)
def _functions(tenant: UUID, gate: int, listings: tuple[UUID, ...], minute: datetime) -> tuple[Indexed, ...]:
    """By what it depends on; see the module."""
    with db.read(tenant) as now:
        policy, _ = policies.in_force()
        current = Tool.objects.filter(plugin_version__stage=Stage.CURRENT).select_related("plugin_version__plugin")
        tools = {tool.pk: tool for tool in current}
        approved, ever, agents = approved_entries(tools.values()), ever_approved(tools.values()), agents_now()
        found = list(
            Function.objects.filter(listing__current=True, tool__in=tools)
            .order_by("tool__slug", "name")
            .values_list(
                *("pk", "tool_id", "name", Left("description", SHORT + 1), "title"),
                *(Cast("annotations", TextField()), Cast("meta", TextField()), "entry_digest", "tokens"),
            )
        )
        counted = _counted([row[0] for row in found if row[8] is None])
    traits = []
    for _, tool_id, name, _, _, annotations, meta, digest, _ in found:
        trusted = tools[tool_id].transport != Transport.URL or (tool_id, name, digest) in approved
        traits.append((_traits(annotations, meta, trusted), trusted))
    entries = [
        Entry(tools[row[1]].slug, row[2], one.kind, one.open_world) for row, (one, _) in zip(found, traits, strict=True)
    ]
    outlooks = cover(policy, entries, agents, now).outlooks
    return tuple(
        Indexed(
            id=pk,
            plugin=tools[tool_id].plugin_version.plugin.name,
            tool=tools[tool_id].slug,
            name=name,
            does=(does or title)[: SHORT + 1],
            traits=one,
            fares=sort_of(outlook),
            tokens=counted.get(pk, 0) if tokens is None else tokens,
            unapproved=not trusted,
            never_approved=tools[tool_id].transport == Transport.URL and (tool_id, name) not in ever,
        )
        for (pk, tool_id, name, does, title, _, _, _, tokens), (one, trusted), outlook in zip(
            found, traits, outlooks, strict=True
        )
    )


@lru_cache(_SAID)
def _traits(annotations: str, meta: str, trusted: bool) -> Traits:
    """By the very texts: most functions of a server say one of a few things."""
    return traits_of(json.loads(annotations), json.loads(meta), trusted=trusted)


def _counted(functions: Sequence[UUID]) -> dict[UUID, int]:
    """The figures of those that an older version stored without one."""
    if not functions:
        return {}
    rows = list(Function.objects.filter(pk__in=functions).only("model_name", "description", "input_schema"))
    counts = estimate([Definition(row.model_name, row.description, row.input_schema) for row in rows])
    return dict(zip((row.pk for row in rows), counts, strict=True))
