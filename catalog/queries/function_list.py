"""The list of functions: filtered and sorted over what the process keeps in mind, a page at a time.

However many functions there are, a page takes the same few queries: what things depend on, the search, the findings
of the rows shown, and the choices of the filters.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q

from base import db, prepared
from catalog.models import LintFinding, Stage
from catalog.queries.function_index import Indexed, functions_of
from catalog.queries.kept_agents import UnreadableAgent, kept_agents
from catalog.queries.paging import A_PAGE, Paged, page_within
from catalog.rules.findings import Severity
from catalog.rules.function_filter import KINDS_FIRST, FunctionFilter, Order
from catalog.rules.grants import Name, granted

ANY: Final = "any"
# each word in the name, the title, the description, or the name of an argument
_WORD: Final = """(f.model_name ILIKE %s OR f.title ILIKE %s OR f.description ILIKE %s OR EXISTS (
    SELECT 1 FROM jsonb_object_keys(CASE jsonb_typeof(f.input_schema -> 'properties')
        WHEN 'object' THEN f.input_schema -> 'properties' ELSE '{}'::jsonb END) k WHERE k ILIKE %s))"""
_SEARCH: Final = """
SELECT f.id FROM catalog_function f JOIN catalog_listing l ON l.id = f.listing_id
    JOIN catalog_tool t ON t.id = f.tool_id JOIN catalog_pluginversion v ON v.id = t.plugin_version_id
WHERE l.current AND v.stage = 'current' AND """


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """One function in the list. `errors` and `warnings` count what lint found of it."""

    of: Indexed
    errors: int
    warnings: int


@dataclass(frozen=True, slots=True)
class Choices:
    """What the filters can be set to."""

    tools: tuple[str, ...]
    plugins: tuple[str, ...]
    agents: tuple[str, ...]
    codes: tuple[str, ...]
    unreadable: tuple[UnreadableAgent, ...]


@dataclass(frozen=True, slots=True)
class FunctionsPage(Paged[FunctionRow]):
    """One page of the list. `found` counts what the filter lets through, `all` everything."""

    all: int
    tokens: int  # of everything found
    most: int  # the biggest figure of the page, for the bars
    choices: Choices
    now: datetime


def functions_page(tenant: UUID, wanted: FunctionFilter, page: int = 1) -> FunctionsPage:
    """One page of the functions that fit; past the end it is the last page."""
    index = functions_of(tenant)
    with db.read(tenant) as now:
        choices, grants = _choices(index, wanted.agent)
        fit = _fitting(index, wanted, grants)
        page = page_within(page, len(fit))
        shown = fit[(page - 1) * A_PAGE : page * A_PAGE]
        found = _findings(shown)
    rows = tuple(FunctionRow(one, *found.get((one.tool, one.name), (0, 0))) for one in shown)
    return FunctionsPage(
        rows=rows,
        found=len(fit),
        all=len(index),
        tokens=sum(one.tokens for one in fit),
        page=page,
        most=max((one.tokens for one in shown), default=1),
        choices=choices,
        now=now,
    )


@dataclass(frozen=True, slots=True)
class FunctionsAfter:
    """Functions in the order of their labels' code points; `found` counts all that fit, before these too."""

    rows: tuple[Indexed, ...]
    found: int
    more: bool


def functions_after(tenant: UUID, wanted: FunctionFilter, after: str, *, most: int) -> FunctionsAfter:
    """The functions that fit and come after the one called `after`, whether it is still there or not."""
    index = functions_of(tenant)
    with db.read(tenant):
        _, grants = _choices(index, wanted.agent)
        fit = sorted(_fitting(index, wanted, grants), key=lambda one: (one.tool, one.name))
    tool, _, name = after.partition(".")
    rest = [one for one in fit if (one.tool, one.name) > (tool, name)] if after else fit
    return FunctionsAfter(tuple(rest[:most]), len(fit), len(rest) > most)


def _fitting(index: tuple[Indexed, ...], wanted: FunctionFilter, grants: Collection[str] | None) -> list[Indexed]:
    fit: Iterable[Indexed] = index
    if wanted.words:
        hits = _search(wanted.words)
        fit = [one for one in fit if one.id in hits]
    if wanted.findings:
        noted = _noted(wanted.findings)
        fit = [one for one in fit if (one.tool, one.name) in noted]
    if grants is not None:
        allowed = _granted(index, grants)
        fit = [one for one in fit if Name(one.tool, one.name) in allowed]
    found = [
        one
        for one in fit
        if wanted.kind in ("", one.traits.kind)
        and wanted.tool in ("", one.tool)
        and wanted.plugin in ("", one.plugin)
        and wanted.fares in ("", one.fares)
        and one.tokens >= wanted.over
    ]
    match wanted.sort:
        case Order.NAME:
            return found
        case Order.TOKENS:
            return sorted(found, key=lambda one: -one.tokens)
        case Order.KIND:
            return sorted(found, key=lambda one: KINDS_FIRST[one.traits.kind])
        case Order.PLUGIN:
            return sorted(found, key=lambda one: one.plugin)


def _search(words: tuple[str, ...]) -> frozenset[UUID]:
    patterns = [f"%{_escaped(word)}%" for word in words]
    sql = _SEARCH + " AND ".join([_WORD] * len(patterns))
    return frozenset(pk for (pk,) in prepared.fetch(sql, [one for one in patterns for _ in range(4)]))


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _granted(index: tuple[Indexed, ...], grants: Collection[str]) -> frozenset[Name]:
    """What these grants come to: entries of remote servers that nobody ever approved are granted to none (C3)."""
    listed = [Name(one.tool, one.name) for one in index]
    unseen = frozenset(Name(one.tool, one.name) for one in index if one.never_approved)
    return frozenset(granted(tuple(grants), listed, unseen=unseen))


def _noted(code: str) -> frozenset[tuple[str, str]]:
    rows = LintFinding.objects.filter(plugin_version__stage=Stage.CURRENT).exclude(function="")
    if code != ANY:
        rows = rows.filter(code=code)
    return frozenset(rows.values_list("tool", "function").distinct())


def _findings(shown: list[Indexed]) -> dict[tuple[str, str], tuple[int, int]]:
    if not shown:
        return {}
    names = Q(tool__in={one.tool for one in shown}, function__in=[one.name for one in shown])
    rows = LintFinding.objects.filter(names, plugin_version__stage=Stage.CURRENT)
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for tool, function, severity in rows.values_list("tool", "function", "severity"):
        counts[tool, function][severity != Severity.ERROR] += 1
    return {name: (errors, warnings) for name, (errors, warnings) in counts.items()}


def _choices(index: tuple[Indexed, ...], agent: str) -> tuple[Choices, tuple[str, ...] | None]:
    """The choices, and what the chosen agent is granted; None without one."""
    agents = kept_agents()
    codes = LintFinding.objects.filter(plugin_version__stage=Stage.CURRENT).exclude(function="")
    one = next((row for row in agents.readable if row.name == agent), None)
    grants = None if not agent else () if one is None else one.spec.functions
    choices = Choices(
        tools=tuple(dict.fromkeys(row.tool for row in index)),
        plugins=tuple(sorted({row.plugin for row in index})),
        agents=agents.names,
        codes=tuple(codes.order_by("code").values_list("code", flat=True).distinct()),
        unreadable=agents.unreadable,
    )
    return choices, grants
