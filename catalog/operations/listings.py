"""Keeping what a tool's own server listed (RULES C2)."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import F

from base import db
from base.clock import boot_time
from catalog import wake
from catalog.models import Function, Listing, Stage, Tool, Transport
from catalog.operations import connections, sign_ins
from catalog.queries.trust import approvals_of
from catalog.rules.estimates import Definition, estimate
from catalog.rules.grants import listing_problems, model_name
from catalog.rules.kinds import traits_of
from catalog.rules.servers import ListedFunction, MeasuredListing
from tenants.models import Gate
from tenants.operations import audit
from tenants.rules.who import Actor

FIRST_RETRY: Final = 2.0  # seconds after a server that could not be listed, doubled each time
LAST_RETRY: Final = 300.0


def store(*, tenant: UUID, tool_id: UUID, measured: MeasuredListing, began: float | None = None) -> bool:
    """Keep a listing as the tool's current one. `began` is when its reading did, by this process's `boot_time`.

    False when it is the one that was kept before, and when it is out of date: one that was read later is kept, or its
    connection was changed since, so that it may be another server's. Then the tool stays due.

    Functions whose names cannot be sent to a model are left out and named on the tool's page (RULES C1). An approval
    of an entry that is not listed so any more ends with the same commit (RULES C3).
    """
    costs = _costs(tenant, tool_id, measured)
    with db.write(tenant) as now:
        # Both clocks are read here and the database's first, so that a listing is taken for older than it is, never
        # for younger: counting and waiting for a connection may have taken seconds.
        read_at = now if began is None else now - timedelta(seconds=boot_time() - began)
        # What is decided from the listing is decided under the gate: no claim is under way while it changes.
        Gate.objects.select_for_update().get(tenant_id=tenant)
        tool = (
            Tool.objects.select_for_update(no_key=True, of=("self",)).select_related("plugin_version").get(pk=tool_id)
        )
        current = Listing.objects.filter(tool=tool, current=True)
        if current.filter(measured_at__gt=read_at).exists() or connections.changed_since(tool, read_at):
            return False
        if tool.plugin_version.stage == Stage.REMOVED:  # while its server was asked
            return False
        wake.changed()
        problems = listing_problems(tool.slug, [function.name for function in measured.functions])
        asked_since = tool.measure_due_at is not None and read_at < tool.measure_due_at <= now
        tool.measure_due_at, tool.measure_failures = tool.measure_due_at if asked_since else None, 0
        told = [*(f"{p.key}: {p.message}; {p.fix}" for p in problems), *measured.problems]
        tool.down_reason = "\n".join(told)
        tool.isolation = measured.isolation
        tool.save(update_fields=["measure_due_at", "measure_failures", "down_reason", "isolation"])
        if tool.transport == Transport.URL:
            connections.keep_protocol(tool, measured.protocol)
        can = {"can_cancel": measured.can_cancel, "can_report": measured.can_report}
        if current.filter(digest=measured.digest, protocol=measured.protocol).update(measured_at=read_at, **can):
            _count_what_was_not(tool, costs)
            return False
        current.update(current=False)
        listing = Listing.objects.create(
            tenant_id=tenant,
            tool=tool,
            digest=measured.digest,
            measured_at=read_at,
            protocol=measured.protocol,
            server_name=measured.server_name[:200],
            server_version=measured.server_version[:200],
            **can,
        )
        refused = {problem.key for problem in problems}
        Function.objects.bulk_create(
            _function(listing, tool, entry, costs[entry.name])
            for entry in measured.functions
            if entry.name not in refused
        )
        if tool.plugin_version.stage in (Stage.CURRENT, Stage.CANARY):
            _end_approvals(tool, {entry.name: entry.digest for entry in measured.functions}, now)
        return True


def _costs(tenant: UUID, tool_id: UUID, measured: MeasuredListing) -> dict[str, int]:
    """About how many tokens each entry costs, by its name (RULES T1). Counted before the gate is taken."""
    with db.read(tenant):
        slug = Tool.objects.values_list("slug", flat=True).get(pk=tool_id)
    entries = {entry.name: entry for entry in measured.functions}
    sent = [Definition(model_name(slug, one.name), one.description, one.input_schema) for one in entries.values()]
    return dict(zip(entries, estimate(sent), strict=True))


def _count_what_was_not(tool: Tool, costs: dict[str, int]) -> None:
    """Entries kept by a version that did not count get their figures without a new listing."""
    for row in Function.objects.filter(tool=tool, listing__current=True, tokens__isnull=True).only("name"):
        Function.objects.filter(pk=row.pk).update(tokens=costs.get(row.name))


def _end_approvals(tool: Tool, listed: dict[str, str], now: datetime) -> None:
    """An approval stands for one exact entry. It ends when that is listed no more, and stays ended if it comes back."""
    standing = approvals_of(tool).filter(withdrawn_at__isnull=True)
    for approval in standing.select_for_update(no_key=True):
        if listed.get(approval.function) != approval.entry_digest:
            approval.withdrawn_at = now
            approval.save(update_fields=["withdrawn_at"])


def _function(listing: Listing, tool: Tool, entry: ListedFunction, tokens: int) -> Function:
    # a remote server's word counts only once a person approved the entry; that is looked up when a call is judged
    traits = traits_of(entry.annotations, entry.meta, trusted=tool.transport != Transport.URL)
    return Function(
        tenant_id=tool.tenant_id,
        listing=listing,
        tool=tool,
        name=entry.name,
        model_name=model_name(tool.slug, entry.name),
        title=entry.title,
        description=entry.description,
        input_schema=entry.input_schema,
        output_schema=entry.output_schema,
        annotations=entry.annotations,
        meta=entry.meta,
        kind=traits.kind,
        read_only=traits.read_only,
        honours_key=traits.honours_key,
        idempotent=traits.idempotent,
        open_world=traits.open_world,
        retry_safe=traits.retry_safe,
        tokens=tokens,
        entry_digest=entry.digest,
    )


def not_measured(*, tenant: UUID, tool_id: UUID, why: str, status: int | None = None) -> None:
    """Note why a tool could not be listed, and try again later. `status` is a remote server's HTTP status."""
    with db.write(tenant) as now:
        if status == sign_ins.TOKEN_REFUSED:  # before the tool, as whoever signs in locks them
            sign_ins.refused(Tool.objects.get(pk=tool_id), sent_at=now)
        tool = (
            Tool.objects.select_for_update(no_key=True, of=("self",)).select_related("plugin_version").get(pk=tool_id)
        )
        if tool.plugin_version.stage == Stage.REMOVED:  # meanwhile: it is not asked again
            return
        tool.measure_failures += 1
        tool.down_reason = why
        tool.measure_due_at = _next_try(now, tool.measure_failures)
        tool.save(update_fields=["measure_due_at", "measure_failures", "down_reason"])
        wake.changed()


def list_anew(*, tenant: UUID, tool: str, actor: Actor) -> bool:
    """Have a tool's servers started anew and listed, as after a change of their code. False: there is no such tool.

    Calls that run go on with the servers they have, which end with the last of them.
    """
    with db.write(tenant) as now:
        found = Tool.objects.filter(plugin_version__stage=Stage.CURRENT, slug=tool)
        due = {"measure_due_at": now, "measure_failures": 0}
        if not found.update(server_generation=F("server_generation") + 1, **due):
            return False
        audit.record(actor, "tool.listed_anew", f"tool {tool}")
        wake.changed()
        return True


def measure_again(*, tenant: UUID, tool_id: UUID) -> None:
    """Have a node read the tool's listing at its next pulse."""
    with db.write(tenant):
        measure_soon(tool_id)


def kept_apart_otherwise(isolation: str) -> list[tuple[UUID, UUID]]:
    """The sandboxed tools, as (tenant, tool), that were last listed on a node with another isolation."""
    with db.sweep():
        stale = Tool.objects.filter(transport=Transport.SANDBOX).exclude(isolation__in=["", isolation])
        return list(stale.values_list("tenant_id", "pk"))


def measure_soon(tool_id: UUID) -> None:
    """The same within an open write: a session was seen to list something else than what is kept."""
    kept = Tool.objects.filter(pk=tool_id).exclude(plugin_version__stage=Stage.REMOVED)
    kept.update(measure_due_at=db.must_write())


def _next_try(now: datetime, failures: int) -> datetime:
    return now + timedelta(seconds=min(FIRST_RETRY * 2.0 ** (failures - 1), LAST_RETRY))
