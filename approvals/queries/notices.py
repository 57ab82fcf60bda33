"""Which notices are due, what each says, and the channels and deliveries as a page shows them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings

from approvals.models import Channel, Delivery, Sending, Way
from approvals.rules.notices import MOST_LISTED, Notice, Told
from base import db, ids, prepared
from base.text import pretty
from jobs.models import Body, Hold
from jobs.queries.story import answered
from jobs.queries.trace import name_of
from tenants.models import Tenant
from tenants.operations import masks

PAGE: Final = 50
MOST_DUE: Final = 500
MOST_COUNTED: Final = 1_001
GATHER: Final = {Way.EMAIL: 60, Way.WEBHOOK: 10}  # seconds between two notices of one kind, so that a flood is one
NOT_TOLD: Final = "not told here: the tool is marked sensitive"

_FITS: Final = """
JOIN jobs_job j ON j.id = h.job_id AND (c.agent = '' OR c.agent = j.agent_name)
JOIN jobs_call k ON k.id = h.call_id AND (c.tool = '' OR c.tool = k.tool_slug)
"""
_OPEN: Final = (
    f"JOIN jobs_hold h ON h.tenant_id = c.tenant_id AND h.closed_at IS NULL AND h.opened_at >= c.since {_FITS}"
)
_NEW: Final = """
NOT EXISTS (SELECT 1 FROM approvals_delivery d WHERE d.channel_id = c.id AND d.hold_id = h.id AND d.about = {about})
"""
_ASKED: Final = "'asked'"
_EXPIRING: Final = "'expiring ' || floor(extract(epoch FROM h.expires_at))::bigint"
_DAY: Final = "'day ' || floor(extract(epoch FROM t.now - h.opened_at) / 86400)::int"
_CLOSED: Final = "'closed'"
_DUE: Final = f"""
WITH t AS (SELECT oz0_now() AS now)
SELECT c.tenant_id, c.id, {_ASKED}, h.id, h.opened_at FROM t CROSS JOIN approvals_channel c {_OPEN}
WHERE c."on" AND h.opened_at <= t.now - c.after * interval '1 second' AND {_NEW.format(about=_ASKED)}
UNION ALL
SELECT c.tenant_id, c.id, {_EXPIRING}, h.id, h.opened_at FROM t CROSS JOIN approvals_channel c {_OPEN}
WHERE c."on" AND c.remind > 0 AND h.expires_at IS NOT NULL AND h.expires_at > t.now
    AND h.expires_at - c.remind * interval '1 second' <= t.now
    AND h.opened_at < h.expires_at - c.remind * interval '1 second' AND {_NEW.format(about=_EXPIRING)}
UNION ALL
SELECT c.tenant_id, c.id, {_DAY}, h.id, h.opened_at FROM t CROSS JOIN approvals_channel c {_OPEN}
WHERE c."on" AND c.remind > 0 AND h.expires_at IS NULL AND h.opened_at <= t.now - interval '1 day'
    AND {_NEW.format(about=_DAY)}
UNION ALL
SELECT c.tenant_id, c.id, {_CLOSED}, h.id, h.opened_at FROM t CROSS JOIN approvals_channel c
JOIN jobs_hold h ON h.tenant_id = c.tenant_id AND h.closed_at > t.now - interval '1 hour'
JOIN approvals_delivery told ON told.channel_id = c.id AND told.hold_id = h.id AND told.about = {_ASKED}
    AND told.standing IN ('{Sending.SENT}', '{Sending.CARRIED}')
WHERE c."on" AND c.tells_end AND {_NEW.format(about=_CLOSED)}
ORDER BY 5, 4 LIMIT {MOST_DUE}
"""  # noqa: S608 - only words of ours


@dataclass(frozen=True, slots=True)
class DueNotice:
    """Questions that one channel is to be told of in one notice, the oldest first: each with what about it."""

    tenant: UUID
    channel: UUID
    about: str  # its first word
    holds: tuple[tuple[UUID, str], ...]


def due() -> list[DueNotice]:
    """What no channel was told yet and should be by now."""
    with db.sweep():
        rows = prepared.fetch(_DUE)
    found: dict[tuple[UUID, UUID, str], list[tuple[UUID, str]]] = {}
    for tenant, channel, about, hold, _ in rows:
        found.setdefault((tenant, channel, about.partition(" ")[0]), []).append((hold, about))
    return [DueNotice(*which, tuple(holds)) for which, holds in found.items()]


def to_send(*, most: int, taken: Collection[UUID]) -> list[tuple[UUID, UUID, UUID]]:
    """At most `most` deliveries that are due, as (tenant, delivery, channel), one of each channel.

    A channel is tried by one process at a time, so that a receiver that hangs holds up its own notices alone. `taken`
    are channels that this process is at.
    """
    with db.sweep() as now:
        busy = Delivery.objects.filter(taken_until__gt=now).values("channel_id")
        rows = (
            Delivery.objects.filter(due_at__lte=now)
            .exclude(channel_id__in=taken)
            .exclude(channel_id__in=busy)
            .order_by("channel_id", "due_at", "pk")
            .distinct("channel_id")
            .values_list("tenant_id", "pk", "channel_id")
        )
        return list(rows[:most])


def notice_of(row: Delivery, channel: Channel, now: datetime) -> Notice | None:
    """What a delivery says by now; None when nothing of it needs to be told any more. Demands an open read or write."""
    tenant, about = row.tenant_id, row.about.partition(" ")[0]
    workspace = Tenant.objects.values_list("name", flat=True).get(pk=tenant)
    waiting = Hold.objects.filter(closed_at__isnull=True)[:MOST_COUNTED].count()
    queue = f"{settings.OZ0_URL.rstrip('/')}/approvals/"
    holds: list[Hold] = []
    if row.hold_id is not None:
        members = [row.hold_id, *Delivery.objects.filter(carried_by=row).values_list("hold_id", flat=True)]
        found = Hold.objects.filter(pk__in=members, closed_at__isnull=about != "closed")
        holds = list(found.select_related("call__function__tool", "job", "answered_by").order_by("pk"))
        if not holds:
            return None
    told = tuple(_told(hold, channel, queue) for hold in holds[:MOST_LISTED])
    more = max(0, len(holds) - MOST_LISTED)
    return Notice(ids.show(ids.NOTICE, row.pk), about, now, workspace, told, more, waiting, queue)


def _told(hold: Hold, channel: Channel, queue: str) -> Told:
    shown = ids.show(ids.HOLD, hold.pk)
    return Told(
        id=shown,
        kind=hold.kind,
        name=name_of(hold.call),
        agent=hold.job.agent_name,
        why=hold.why,
        opened_at=hold.opened_at,
        expires_at=hold.expires_at,
        url=f"{queue}{shown}/",
        arguments=_arguments(hold) if channel.with_arguments else None,
        ended=(answered(hold) or hold.state.capitalize()) if hold.closed_at is not None else "",
    )


def _arguments(hold: Hold) -> str:
    """A call's arguments as a channel that may have them is told: masked, or a marker (RULES A14)."""
    call = hold.call
    if call.function is not None and call.function.tool.sensitive:
        return NOT_TOLD
    value = Body.objects.get(pk=call.arguments_body_id).data if call.arguments_body_id else call.arguments
    try:
        return masks.of(hold.tenant_id)(pretty(value))
    except masks.CannotMask:
        return masks.MARKER


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel as its page shows it; never its secret. `where` is what people know it by."""

    pk: UUID
    shown_id: str
    name: str
    way: Way
    where: str
    url: str
    allowed: tuple[str, ...]
    slack: bool
    to: tuple[str, ...]
    agent: str
    tool: str
    after: int
    remind: int
    tells_end: bool
    with_arguments: bool
    on: bool
    off_because: str
    failing_since: datetime | None
    failures: int
    sent_at: datetime | None
    trouble: str
    changed_at: datetime

    @property
    def after_minutes(self) -> int:
        """How long a question waits before it is told."""
        return self.after // 60

    @property
    def remind_minutes(self) -> int:
        """How long before it expires it is told again."""
        return self.remind // 60


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One notice in the log."""

    shown_id: str
    channel: str
    shown_channel: str
    about: str
    hold: str | None
    with_it: int
    state: str
    made_at: datetime
    due_at: datetime | None
    ended_at: datetime | None
    tries: int
    status: int | None
    took: float | None
    trouble: str
    can_repeat: bool


@dataclass(frozen=True, slots=True)
class NoticesPage:
    """The channels, and the newest deliveries of all of them or of one."""

    channels: tuple[ChannelRow, ...]
    deliveries: tuple[DeliveryRow, ...]
    next_before: str | None
    now: datetime


def notices_page(
    tenant: UUID, *, channel: UUID | None = None, state: str = "", before: UUID | None = None
) -> NoticesPage:
    """The page of notices; of one channel alone when named."""
    with db.read(tenant) as now:
        rows = Channel.objects.filter(removed_at__isnull=True).order_by("name")
        kept = rows.filter(pk=channel) if channel else rows
        log = Delivery.objects.exclude(standing=Sending.CARRIED)
        if channel:
            log = log.filter(channel_id=channel)
        if state:
            log = log.filter(standing=state)
        if before:
            log = log.filter(pk__lt=before)
        found = list(log.select_related("channel").order_by("-pk")[: PAGE + 1])
        carried = list(
            Delivery.objects.filter(carried_by__in=[row.pk for row in found]).values_list("carried_by", flat=True)
        )
        return NoticesPage(
            channels=tuple(_channel_row(row) for row in kept),
            deliveries=tuple(_delivery_row(row, carried.count(row.pk)) for row in found[:PAGE]),
            next_before=ids.show(ids.NOTICE, found[PAGE - 1].pk) if len(found) > PAGE else None,
            now=now,
        )


def _channel_row(row: Channel) -> ChannelRow:
    last = row.deliveries.filter(tries__gt=0).order_by("-pk")
    sent = last.filter(standing=Sending.SENT).values_list("ended_at", flat=True).first()
    failing = last.exclude(trouble="").values_list("trouble", flat=True).first() if row.failures else ""
    return ChannelRow(
        pk=row.pk,
        shown_id=ids.show(ids.CHANNEL, row.pk),
        name=row.name,
        way=Way(row.way),
        where=urlsplit(row.url).netloc if row.way == Way.WEBHOOK else ", ".join(row.to),
        url=row.url,
        allowed=tuple(row.allowed),
        slack=row.slack,
        to=tuple(row.to),
        agent=row.agent,
        tool=row.tool,
        after=row.after,
        remind=row.remind,
        tells_end=row.tells_end,
        with_arguments=row.with_arguments,
        on=row.on,
        off_because=row.off_because,
        failing_since=row.failing_since,
        failures=row.failures,
        sent_at=sent,
        trouble=failing or "",
        changed_at=row.changed_at,
    )


def _delivery_row(row: Delivery, with_it: int) -> DeliveryRow:
    return DeliveryRow(
        shown_id=ids.show(ids.NOTICE, row.pk),
        channel=row.channel.name,
        shown_channel=ids.show(ids.CHANNEL, row.channel_id),
        about=row.about.partition(" ")[0],
        hold=ids.show(ids.HOLD, row.hold_id) if row.hold_id else None,
        with_it=with_it,
        state=row.standing,
        made_at=row.made_at,
        due_at=row.due_at,
        ended_at=row.ended_at,
        tries=row.tries,
        status=row.status,
        took=row.took,
        trouble=row.trouble,
        can_repeat=row.channel.on and row.standing in (Sending.FAILED, Sending.SENT),
    )


def names_for(tenant: UUID) -> tuple[Sequence[str], Sequence[str]]:
    """(agents, tools) that a channel can be narrowed to."""
    from catalog.models import Agent, Tool

    with db.read(tenant):
        agents = list(Agent.objects.order_by("name").values_list("name", flat=True).distinct()[:200])
        tools = list(Tool.objects.order_by("slug").values_list("slug", flat=True).distinct()[:200])
    return agents, tools
