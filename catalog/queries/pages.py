"""A tool with a page of its functions, without schemas."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from catalog.models import Function, Listing, Tool
from catalog.queries.costs import tool_costs
from catalog.queries.function_index import Indexed
from catalog.queries.paging import A_PAGE, Paged, page_within
from catalog.queries.trust import Approved, approved_entries, traits_by, trusted_by
from catalog.rules.estimates import ONE_IS_LONG, Cost
from catalog.rules.kinds import undeclared
from catalog.rules.sandbox import words_for

_COUNTED: Final = ("output_schema", "input_schema")


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """One function. `undeclared` says why its kind is not known, `fix` what to paste."""

    label: str
    name: str
    model_name: str
    does: str
    kind: str
    retry_safe: bool
    honours_key: bool
    idempotent: bool
    open_world: bool
    tokens: int
    undeclared: str
    fix: str
    unapproved: bool  # an entry of a remote listing that no standing approval covers

    @property
    def long(self) -> bool:
        """Whether its definition alone is worth a warning (RULES T2)."""
        return self.tokens > ONE_IS_LONG


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool with a page of the functions that its server listed last. The figures are of all of them."""

    slug: str
    transport: str
    timeout: float
    slots: int
    sensitive: bool
    down_reason: str
    measured_at: datetime | None
    server: str
    protocol: str
    functions: Paged[FunctionRow]
    tokens: int
    most: int  # the biggest figure of the page, for the bars
    undeclared: int  # how many do not say what they do
    waiting: int  # entries of a remote listing that nobody approved
    can_cancel: bool
    can_report: bool
    being_listed: bool  # a node is about to start its server and read what it offers
    tried_again_at: datetime | None  # when that is tried again which failed
    kept_apart: str  # what keeps a sandboxed tool's servers apart, as measured


def tool_row(tool: Tool, listed: Sequence[Indexed], page: int = 1) -> ToolRow:
    """One tool with a page of what its server listed last; `listed` is that, by name. Demands an open read."""
    listing = Listing.objects.filter(tool=tool, current=True).first()
    page = page_within(page, len(listed))
    shown = [one.id for one in listed[(page - 1) * A_PAGE : page * A_PAGE]]
    uncounted = Function.objects.filter(pk__in=shown, tokens__isnull=True).exists()
    rows = list(
        Function.objects.filter(pk__in=shown)
        .order_by("name")
        .select_related("tool")
        .defer(*(_COUNTED[:1] if uncounted else _COUNTED))
    )
    approved = approved_entries([tool])
    costs = tool_costs(rows, tool.slug)
    functions = tuple(_function(row, cost, approved) for row, cost in zip(rows, costs, strict=True))
    return ToolRow(
        slug=tool.slug,
        transport=tool.transport,
        timeout=tool.timeout,
        slots=tool.slots,
        sensitive=tool.sensitive,
        down_reason=tool.down_reason,
        measured_at=listing.measured_at if listing else None,
        server=f"{listing.server_name} {listing.server_version}".strip() if listing else "",
        protocol=listing.protocol if listing else "",
        functions=Paged(functions, len(listed), page),
        tokens=sum(one.tokens for one in listed),
        most=max((one.tokens for one in functions), default=1),
        undeclared=sum(one.undeclared for one in listed),
        waiting=sum(one.unapproved for one in listed),
        can_cancel=listing.can_cancel if listing else True,
        can_report=listing.can_report if listing else True,
        being_listed=tool.measure_due_at is not None and not tool.measure_failures,
        tried_again_at=tool.measure_due_at if tool.measure_failures else None,
        kept_apart=words_for(tool.isolation, network=bool(tool.sandbox and tool.sandbox.get("network"))),
    )


def _function(row: Function, cost: Cost, approved: Approved) -> FunctionRow:
    traits = traits_by(row, approved)
    trouble = undeclared(row.annotations, trusted=trusted_by(row, approved))
    return FunctionRow(
        label=cost.label,
        name=row.name,
        model_name=row.model_name,
        does=row.description or row.title,
        kind=traits.kind,
        retry_safe=traits.retry_safe,
        honours_key=traits.honours_key,
        idempotent=traits.idempotent,
        open_world=traits.open_world,
        tokens=cost.tokens,
        undeclared=trouble.reason if trouble else "",
        fix=trouble.fix if trouble else "",
        unapproved=not trusted_by(row, approved),
    )
