"""The tools in a line each: whether a server can be listed, and what of it somebody should look at."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count

from base import db
from catalog.models import Connection, Credential, KillSwitch, LintFinding, Listing, Stage, Standing, Tool
from catalog.queries.function_index import Indexed, functions_of
from catalog.queries.policy_waiting import Show
from catalog.rules.findings import Severity
from catalog.rules.sandbox import words_for
from catalog.rules.switching import Mode, Scope


@dataclass(frozen=True, slots=True)
class ToolState:
    """One tool. `undeclared` are functions that do not say what they do, `unapproved` entries of a remote listing
    that wait for approval, `waits` functions whose every call waits for a person."""

    slug: str
    plugin: str
    transport: str
    sensitive: bool
    connection: str
    standing: Standing | None  # of a connection that is signed in to
    kept_apart: str
    down_reason: str
    measured_at: datetime | None
    being_listed: bool
    switched: tuple[Mode, ...]
    functions: int
    tokens: int
    undeclared: int
    unapproved: int
    waits: int
    errors: int
    warnings: int

    @property
    def state(self) -> str:
        """A word of the status language."""
        if self.down_reason and not self.functions:
            return "down"
        return "up" if self.measured_at else "new"

    @property
    def troubled(self) -> bool:
        """Whether somebody should look at it."""
        return bool(self.down_reason or self.undeclared or self.unapproved or self.errors)


def tools_page(tenant: UUID) -> tuple[tuple[ToolState, ...], datetime]:
    """Every current tool, and the time."""
    functions = functions_of(tenant)
    with db.read(tenant) as now:
        return tool_states(functions), now


def tool_states(functions: Iterable[Indexed]) -> tuple[ToolState, ...]:
    """Every current tool, those that need somebody first. Demands an open read."""
    rows = list(Tool.objects.filter(plugin_version__stage=Stage.CURRENT).select_related("plugin_version__plugin"))
    measured = dict(Listing.objects.filter(tool__in=rows, current=True).values_list("tool_id", "measured_at"))
    counts = _counts(functions)
    found, standings, switched = _findings(), _standings(rows), _switched()
    states = [
        ToolState(
            slug=row.slug,
            plugin=row.plugin_version.plugin.name,
            transport=row.transport,
            sensitive=row.sensitive,
            connection=row.connection,
            standing=standings.get(row.connection),
            kept_apart=words_for(row.isolation, network=bool(row.sandbox and row.sandbox.get("network"))),
            down_reason=row.down_reason,
            measured_at=measured.get(row.pk),
            being_listed=row.measure_due_at is not None and not row.measure_failures,
            switched=tuple(switched[row.slug]),
            functions=counts[row.slug]["functions"],
            tokens=counts[row.slug]["tokens"],
            undeclared=counts[row.slug]["undeclared"],
            unapproved=counts[row.slug]["unapproved"],
            waits=counts[row.slug]["waits"],
            errors=found[row.slug][Severity.ERROR],
            warnings=found[row.slug][Severity.WARNING],
        )
        for row in rows
    ]
    return tuple(sorted(states, key=lambda tool: (not tool.down_reason, not tool.troubled, tool.slug)))


def _counts(functions: Iterable[Indexed]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in functions:
        counter = counts[one.tool]
        counter["functions"] += 1
        counter["tokens"] += one.tokens
        counter["unapproved"] += one.unapproved
        counter["undeclared"] += one.undeclared and not one.unapproved
        counter["waits"] += one.fares is Show.WAITS
    return counts


def _findings() -> dict[str, Counter[str]]:
    rows = LintFinding.objects.filter(plugin_version__stage=Stage.CURRENT).exclude(tool="")
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for tool, severity, count in rows.order_by().values_list("tool", "severity").annotate(Count("pk")):
        found[tool][severity] += count
    return found


def _standings(rows: Iterable[Tool]) -> dict[str, Standing]:
    names = {row.connection for row in rows if row.connection}
    if not names:
        return {}
    used = Connection.objects.filter(name__in=names, credential=Credential.OAUTH).select_related("sign_in")
    return {one.name: Standing(one.sign_in.standing) if hasattr(one, "sign_in") else Standing.OUT for one in used}


def _switched() -> dict[str, list[Mode]]:
    found: dict[str, list[Mode]] = defaultdict(list)
    on = KillSwitch.objects.filter(off_at__isnull=True, scope=Scope.TOOL).order_by("mode")
    for target, mode in on.values_list("target", "mode"):
        found[target].append(Mode(mode))
    return found
