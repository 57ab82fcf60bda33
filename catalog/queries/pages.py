"""The catalog as a page: plugins, their tools with the biggest functions, and agents, without schemas."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from catalog.models import Function, Listing, Tool
from catalog.queries.costs import tool_costs
from catalog.queries.listing_review import count_waiting
from catalog.queries.trust import Approved, approved_entries, traits_by, trusted_by
from catalog.rules.estimates import ONE_IS_LONG, Cost
from catalog.rules.kinds import undeclared
from catalog.rules.sandbox import words_for

SHOWN: Final = 150  # functions of one tool on its page


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
    """One tool with the functions its server listed last."""

    slug: str
    transport: str
    timeout: float
    slots: int
    sensitive: bool
    down_reason: str
    measured_at: datetime | None
    server: str
    protocol: str
    functions: tuple[FunctionRow, ...]
    waiting: int  # entries of a remote listing that nobody approved
    can_cancel: bool
    can_report: bool
    being_listed: bool  # a node is about to start its server and read what it offers
    tried_again_at: datetime | None  # when that is tried again which failed
    kept_apart: str  # what keeps a sandboxed tool's servers apart, as measured

    @property
    def undeclared(self) -> int:
        """How many of its functions do not say what they do."""
        return sum(bool(function.undeclared) for function in self.functions)

    @property
    def tokens(self) -> int:
        """What all its definitions come to."""
        return sum(function.tokens for function in self.functions)

    @property
    def most(self) -> int:
        """The biggest figure, for the bars."""
        return max((function.tokens for function in self.functions), default=1)

    @property
    def first(self) -> tuple[FunctionRow, ...]:
        """What its page shows: all, or the biggest when there are very many, by name."""
        if len(self.functions) <= SHOWN:
            return self.functions
        biggest = sorted(self.functions, key=lambda function: (-function.tokens, function.name))[:SHOWN]
        return tuple(sorted(biggest, key=lambda function: function.name))


def tool_row(tool: Tool) -> ToolRow:
    """One tool with the functions its server listed last. Demands an open read."""
    listing = Listing.objects.filter(tool=tool, current=True).first()
    functions = Function.objects.filter(listing=listing).order_by("name") if listing else Function.objects.none()
    rows = list(functions.select_related("tool").defer("output_schema", *([] if _uncounted(functions) else _SCHEMA)))
    approved = approved_entries([tool])
    costs = tool_costs(rows, tool.slug)
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
        functions=tuple(_function(row, cost, approved) for row, cost in zip(rows, costs, strict=True)),
        waiting=count_waiting(tool),
        can_cancel=listing.can_cancel if listing else True,
        can_report=listing.can_report if listing else True,
        being_listed=tool.measure_due_at is not None and not tool.measure_failures,
        tried_again_at=tool.measure_due_at if tool.measure_failures else None,
        kept_apart=words_for(tool.isolation, network=bool(tool.sandbox and tool.sandbox.get("network"))),
    )


_SCHEMA: Final = ("input_schema",)


def _uncounted(functions: QuerySet[Function]) -> bool:
    return functions.filter(tokens__isnull=True).exists()


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
