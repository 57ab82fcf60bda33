"""Telling people: what is due becomes a row, a row is claimed, sent outside any transaction, and settled.

A question's own transaction knows nothing of it. What was never told is found by looking, so nothing is lost with a
process or a message, and a notice may come twice, under the same id.

for notice in notices.due(): note(notice)            # rows, once each
work = claim(tenant=…, delivery=…)                   # intent, committed
settle(work, send(work), jitter=…)                   # until it has committed
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, assert_never
from uuid import UUID

from django.conf import settings

from approvals.models import Channel, Delivery, Sending, Way
from approvals.operations.channels import drop_due
from approvals.queries import notices
from approvals.queries.notices import GATHER, DueNotice
from approvals.rules import notices as words
from approvals.rules.channels import GiveUp, TryAgain, after_failure, signature, why_off
from approvals.rules.secret_names import signing_name
from approvals.sessions import mail, webhook
from approvals.sessions.sent import Sent
from base import db, ids
from tenants.operations import audit, vault
from tenants.rules.who import SYSTEM

LEASE: Final = timedelta(seconds=60)  # well over what one try may take; then its process is gone
ANSWERED: Final = "It was answered before it could be told."


@dataclass(frozen=True, slots=True)
class Work:
    """One try of one notice, complete. Neither its address nor its headers are shown anywhere."""

    tenant: UUID
    delivery: UUID
    way: Way
    id: str
    at: datetime
    subject: str = ""
    body: bytes = b""
    to: tuple[str, ...] = ()
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    allowed: tuple[str, ...] = ()
    cannot: str = ""  # why it cannot be sent at all


def note_due() -> int:
    """Make a row of every notice that is due; how many questions they tell of."""
    return sum(note(one) for one in notices.due())


def note(due: DueNotice) -> int:
    """One notice for these questions: the oldest carries the others. Twice, or too soon after the last, is none."""
    with db.write(due.tenant) as now:
        channel = Channel.objects.select_for_update(no_key=True).filter(pk=due.channel, on=True).first()
        if channel is None:
            return 0
        same = Delivery.objects.filter(channel=channel, about__startswith=due.about)
        pause = timedelta(seconds=GATHER[Way(channel.way)])
        if same.exclude(standing=Sending.CARRIED).filter(made_at__gt=now - pause).exists():
            return 0
        told = set(same.filter(hold__in=[hold for hold, _ in due.holds]).values_list("hold_id", "about"))
        fresh = [one for one in due.holds if one not in told]
        if not fresh:
            return 0
        (first, about), *rest = fresh
        carrier = Delivery(tenant_id=due.tenant, channel=channel, hold_id=first, about=about, made_at=now, due_at=now)
        carrier.save(force_insert=True)
        Delivery.objects.bulk_create(
            Delivery(
                tenant_id=due.tenant,
                channel=channel,
                hold_id=hold,
                about=about,
                standing=Sending.CARRIED,
                carried_by=carrier,
                made_at=now,
                ended_at=now,
            )
            for hold, about in rest
        )
    return len(fresh)


def claim(*, tenant: UUID, delivery: UUID) -> Work | None:
    """Take a due notice, so that nobody else sends it meanwhile; None when it is not due, or not needed any more."""
    with db.write(tenant) as now:
        to = Delivery.objects.filter(pk=delivery).values("channel_id")
        channel = Channel.objects.select_for_update(no_key=True).filter(pk__in=to, on=True).first()
        row = Delivery.objects.select_for_update(no_key=True).filter(pk=delivery).first()
        if channel is None or row is None or row.due_at is None or row.due_at > now:
            return None
        if Delivery.objects.filter(channel=channel, taken_until__gt=now).exists():
            return None
        said = notices.notice_of(row, channel, now)
        if said is None:
            _end(row, Sending.DROPPED, now, ANSWERED)
            return None
        row.taken_until, row.tries = now + LEASE, row.tries + 1
        row.save(update_fields=["taken_until", "tries"])
        return _work(row, channel, said, now)


def _work(row: Delivery, channel: Channel, said: words.Notice, now: datetime) -> Work:
    shown = ids.show(ids.NOTICE, row.pk)
    if channel.way == Way.EMAIL:
        text = words.text(said).encode()
        return Work(row.tenant_id, row.pk, Way.EMAIL, shown, now, words.heading(said), text, tuple(channel.to))
    body, stamp = words.payload(said, slack=channel.slack), int(now.timestamp())
    try:
        secret = vault.get(row.tenant_id, signing_name(channel.pk))
    except vault.NoSecret as error:
        return Work(row.tenant_id, row.pk, Way.WEBHOOK, shown, now, cannot=f"It cannot be signed: {error}")
    headers = {
        "Content-Type": "application/json",
        "X-Oz0-Notice": shown,
        "X-Oz0-Timestamp": str(stamp),
        "X-Oz0-Signature": signature(secret, stamp, body),
    }
    return Work(
        row.tenant_id,
        row.pk,
        Way.WEBHOOK,
        shown,
        now,
        body=body,
        url=channel.url,
        headers=headers,
        allowed=tuple(channel.allowed),
    )


def send(work: Work) -> Sent:
    """Send it once. Blocks, for at most a minute; call it outside any transaction."""
    if work.cannot:
        return Sent(False, work.cannot)
    match work.way:
        case Way.WEBHOOK:
            return webhook.post(work.url, headers=work.headers, body=work.body, allowed=work.allowed)
        case Way.EMAIL:
            server, text = settings.OZ0_SMTP, work.body.decode()
            return mail.send(server, to=work.to, subject=work.subject, text=text, id=work.id, at=work.at)
        case never:
            assert_never(never)


def settle(work: Work, sent: Sent, *, jitter: float) -> None:
    """Keep how a try ended: sent, due again later, or given up; a channel that has failed for long is turned off."""
    with db.write(work.tenant) as now:
        row = Delivery.objects.only("channel_id").get(pk=work.delivery)
        channel = Channel.objects.select_for_update(no_key=True).get(pk=row.channel_id)
        row = Delivery.objects.select_for_update(no_key=True).get(pk=work.delivery)
        row.taken_until, row.status, row.took, row.trouble = None, sent.status, sent.took, sent.trouble
        row.save(update_fields=["taken_until", "status", "took", "trouble"])
        if sent.arrived:
            if row.standing == Sending.DUE:
                _end(row, Sending.SENT, now, sent.trouble)
            _worked(channel)
            return
        _failed(channel, row, sent, now)
        if row.standing != Sending.DUE or not channel.on:
            return
        match after_failure(tries=row.tries, made_at=row.made_at, now=now, jitter=jitter, wait=sent.wait):
            case TryAgain(at):
                row.due_at = at
                row.save(update_fields=["due_at"])
            case GiveUp(why):
                _end(row, Sending.FAILED, now, f"{sent.trouble} {why}")
            case never:
                assert_never(never)


def _worked(channel: Channel) -> None:
    if channel.failures:
        channel.failures, channel.failing_since = 0, None
        channel.save(update_fields=["failures", "failing_since"])


def _failed(channel: Channel, row: Delivery, sent: Sent, now: datetime) -> None:
    channel.failures += 1
    channel.failing_since = channel.failing_since or now
    why = why_off(
        failing_since=channel.failing_since,
        failures=channel.failures,
        now=now,
        last=sent.trouble,
        status=sent.status,
    )
    if why and channel.on:
        channel.on, channel.off_because = False, why
        dropped = drop_due(channel, why)
        row.refresh_from_db()
        audit.record(SYSTEM, "channel.off", f"channel {channel.name}", after={"dropped": dropped}, note=why)
    channel.save(update_fields=["failures", "failing_since", "on", "off_because"])


def _end(row: Delivery, state: Sending, now: datetime, trouble: str) -> None:
    row.standing, row.due_at, row.ended_at, row.trouble = state, None, now, trouble
    row.save(update_fields=["standing", "due_at", "ended_at", "trouble"])
