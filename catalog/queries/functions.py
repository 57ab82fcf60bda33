"""Which agents and functions there are now."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final
from uuid import UUID

from base import prepared
from base.prepared import Table
from catalog.models import Agent, Function, PluginVersion, Stage, Tool, Transport
from catalog.queries.trust import ever_approved
from catalog.rules.grants import Name, model_name
from catalog.rules.grants import granted as grants_of

_REMEMBERED: Final = 1024  # agents' files and listings that a process keeps in mind; rows of either never change
_FUNCTIONS: Final = Table(Function)
_TOOLS: Final = Table(Tool)
_VERSIONS: Final = Table(PluginVersion)
_AGENTS: Final = Table(Agent)
_CURRENT: Final = f"""
SELECT {_AGENTS.columns("a")}
FROM catalog_agent a JOIN catalog_pluginversion v ON v.id = a.plugin_version_id
    JOIN catalog_plugin p ON p.id = v.plugin_id
WHERE a.name = %s AND v.stage = '{Stage.CURRENT}' ORDER BY p.name LIMIT 1
"""  # noqa: S608 - only words of ours
# What an agent is granted, beside each tool that it names, or beside none; its own tools come last, so that they stay.
_TOOLS_OF: Final = f"""
SELECT a.definition -> 'functions', t.slug, t.id, t.transport, t.listing_id
FROM catalog_agent a JOIN catalog_pluginversion own ON own.id = a.plugin_version_id
    LEFT JOIN LATERAL (
        SELECT t.slug, t.id, t.transport, l.id AS listing_id, v.id = own.id AS is_own
        FROM catalog_tool t JOIN catalog_pluginversion v ON v.id = t.plugin_version_id
            LEFT JOIN catalog_listing l ON l.tool_id = t.id AND l.current
        WHERE (v.id = own.id AND v.stage <> '{Stage.REMOVED}'
                OR v.stage = '{Stage.CURRENT}' AND v.plugin_id <> own.plugin_id)
            AND t.slug IN (SELECT split_part(g, '.', 1) FROM jsonb_array_elements_text(a.definition -> 'functions') g)
    ) t ON true
WHERE a.id = %s ORDER BY t.is_own, t.id
"""  # noqa: S608 - only words of ours
_LISTED: Final = "SELECT name, id FROM catalog_function WHERE listing_id = %s"
_ENTRY: Final = f"""
SELECT {_FUNCTIONS.columns("f")}, {_TOOLS.columns("t")}, {_VERSIONS.columns("v")}
FROM catalog_function f JOIN catalog_tool t ON t.id = f.tool_id
    JOIN catalog_pluginversion v ON v.id = t.plugin_version_id
WHERE f.id = %s
"""  # noqa: S608 - only names of ours


def current_agent(name: str) -> Agent | None:
    """The agent of this name in its plugin's current version."""
    found = prepared.fetch_one(_CURRENT, (name,))
    return None if found is None else _AGENTS.row(found)


def granted(agent_id: UUID) -> Mapping[str, UUID]:
    """The functions an agent may call: the id of each, by the name its model uses. `entry` gives the row.

    A tool of the agent's own plugin is the one of the agent's version, so a running job keeps what it started with;
    any other plugin's tool is the current one.
    """
    found = prepared.fetch(_TOOLS_OF, [agent_id])
    if not found:
        raise Agent.DoesNotExist
    grants = _grants_in(found[0][0])
    tools = {slug: more for _, slug, *more in found if slug is not None}
    listings = tuple((slug, listing) for slug, (_, _, listing) in sorted(tools.items()) if listing is not None)
    remote = [tool for tool, transport, _ in tools.values() if transport == Transport.URL]
    return _granted(grants, listings, _unseen_of(remote, listings))


def not_listed(agent_id: UUID) -> list[str]:
    """The tools that an agent is granted something of and whose server was never listed."""
    found = prepared.fetch(_TOOLS_OF, [agent_id])
    return sorted(slug for _, slug, _, _, listing in found if slug is not None and listing is None)


@lru_cache(_REMEMBERED)
def _grants_in(functions: str) -> tuple[str, ...]:
    """What an agent's file grants, by its very text."""
    return tuple(json.loads(functions))


@lru_cache(_REMEMBERED)
def _granted(
    grants: tuple[str, ...], listings: tuple[tuple[str, UUID], ...], unseen_: frozenset[Name]
) -> Mapping[str, UUID]:
    by_name = _by_name(listings)
    return {model_name(one.tool, one.function): by_name[one] for one in grants_of(grants, by_name, unseen=unseen_)}


def _by_name(listings: Iterable[tuple[str, UUID]]) -> dict[Name, UUID]:
    return {Name(slug, name): entry for slug, listing in listings for name, entry in _entries_of(listing)}


@lru_cache(_REMEMBERED)
def _entries_of(listing: UUID) -> tuple[tuple[str, UUID], ...]:
    """Name and id of each function of a listing that this tenant was seen to have."""
    return tuple((name, entry) for name, entry in prepared.fetch(_LISTED, [listing]))


def _unseen_of(remote: list[UUID], listings: tuple[tuple[str, UUID], ...]) -> frozenset[Name]:
    if not remote:
        return frozenset()
    return unseen(Tool.objects.filter(pk__in=remote), _by_name(listings))


def entry(function_id: UUID) -> Function:
    """A function with its tool and that one's plugin version, all read at once."""
    found = prepared.fetch_one(_ENTRY, [function_id])
    if found is None:
        raise Function.DoesNotExist
    first, second = len(_FUNCTIONS), len(_FUNCTIONS) + len(_TOOLS)
    function, tool = _FUNCTIONS.row(found[:first]), _TOOLS.row(found[first:second])
    tool.plugin_version = _VERSIONS.row(found[second:])
    function.tool = tool
    return function


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
