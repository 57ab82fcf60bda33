"""Making, changing, trying and removing the channels that notices go to (RULES A12). The actor is an admin."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from approvals.models import Channel, Delivery, Sending, Way
from approvals.rules.channels import MOST_CHANNELS, BadChannel, read_name
from approvals.rules.secret_names import signing_name
from base import db, ids
from base.addresses import Refused, read_place, read_url
from tenants.operations import audit, vault
from tenants.rules.who import Actor

MOST_ALLOWED: Final = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a channel shall be. `url`, `allowed` and `slack` are of a webhook, `to` of an email."""

    name: str
    url: str = ""
    allowed: Sequence[str] = ()
    slack: bool = False
    to: Sequence[str] = ()
    agent: str = ""
    tool: str = ""
    after: int = 0
    remind: int = 0
    tells_end: bool = False
    with_arguments: bool = False


def make(*, tenant: UUID, way: Way, wanted: Wanted, secret: str, actor: Actor) -> UUID:
    """Add a channel; it tells of what is asked from now on. `secret` signs its webhooks. Raises `BadChannel`."""
    with db.write(tenant) as now:
        db.alone("names a channel")
        if Channel.objects.filter(removed_at__isnull=True).count() >= MOST_CHANNELS:
            raise BadChannel(f"there are {MOST_CHANNELS} channels already: remove one first")
        row = Channel(tenant_id=tenant, way=way, since=now)
        _fill(row, wanted)
        row.save(force_insert=True)
        if way is Way.WEBHOOK:
            vault.put(signing_name(row.pk), secret)
        audit.record(actor, "channel.made", f"channel {row.name}", after=_shown(row))
    return row.pk


def change(*, tenant: UUID, channel: UUID, wanted: Wanted, actor: Actor) -> None:
    """Change a channel. Raises `BadChannel`."""
    with db.write(tenant):
        row = _locked(channel)
        before = _shown(row)
        _fill(row, wanted)
        row.failures, row.failing_since = 0, None
        row.save()
        audit.record(actor, "channel.changed", f"channel {row.name}", before=before, after=_shown(row))


def turn(*, tenant: UUID, channel: UUID, on: bool, actor: Actor) -> None:
    """Turn a channel on, for what is asked from then on, or off; what was still to be sent is dropped then."""
    with db.write(tenant) as now:
        row = _locked(channel)
        if row.on == on:
            return
        row.on, row.off_because, row.failures, row.failing_since = on, "", 0, None
        if on:
            row.since = now
        else:
            drop_due(row, "The channel was turned off.")
        row.changed_at = now
        row.save()
        audit.record(actor, "channel.on" if on else "channel.off", f"channel {row.name}")


def new_secret(*, tenant: UUID, channel: UUID, secret: str, actor: Actor) -> None:
    """Sign by another secret from now on. Raises `BadChannel` for what signs nothing."""
    with db.write(tenant):
        row = _locked(channel)
        if row.way != Way.WEBHOOK:
            raise BadChannel("an email is not signed")
        version = vault.put(signing_name(row.pk), secret)
        audit.record(actor, "channel.secret", f"channel {row.name}", after={"version": version})


def remove(*, tenant: UUID, channel: UUID, actor: Actor) -> None:
    """Remove a channel and its secret; the log of what it was sent stays."""
    with db.write(tenant) as now:
        row = _locked(channel)
        drop_due(row, "The channel was removed.")
        vault.drop(signing_name(row.pk))
        row.on, row.removed_at = False, now
        row.save(update_fields=["on", "removed_at"])
        audit.record(actor, "channel.removed", f"channel {row.name}", before=_shown(row))


def send_test(*, tenant: UUID, channel: UUID, actor: Actor) -> UUID:
    """Have a test go out at once; the delivery. Raises `BadChannel` while the channel is off."""
    with db.write(tenant) as now:
        row = _locked(channel)
        if not row.on:
            raise BadChannel("the channel is off: turn it on first")
        sent = Delivery.objects.create(tenant_id=tenant, channel=row, about="test", made_at=now, due_at=now)
        audit.record(actor, "channel.tested", f"channel {row.name}", after={"notice": ids.show(ids.NOTICE, sent.pk)})
    return sent.pk


def send_again(*, tenant: UUID, delivery: UUID, actor: Actor) -> None:
    """Have a notice that was sent, or given up, go out once more under the same id. Raises `BadChannel`."""
    with db.write(tenant) as now:
        row = Delivery.objects.select_for_update(no_key=True).filter(pk=delivery).first()
        if row is None:
            raise BadChannel("there is no such notice")
        channel = _locked(row.channel_id)
        if not channel.on:
            raise BadChannel("the channel is off: turn it on first")
        if row.standing not in (Sending.SENT, Sending.FAILED):
            raise BadChannel("only what was sent or given up is sent again")
        row.standing, row.due_at, row.ended_at, row.made_at, row.tries, row.trouble = Sending.DUE, now, None, now, 0, ""
        row.save(update_fields=["standing", "due_at", "ended_at", "made_at", "tries", "trouble"])
        shown = ids.show(ids.NOTICE, row.pk)
        audit.record(actor, "channel.sent_again", f"channel {channel.name}", after={"notice": shown})


def drop_due(channel: Channel, why: str) -> int:
    """Send nothing more of what is due in a channel; how many notices. Demands an open write."""
    now = db.must_write()
    waiting = Delivery.objects.filter(channel=channel, standing=Sending.DUE)
    return waiting.update(standing=Sending.DROPPED, due_at=None, ended_at=now, trouble=why)


def _fill(row: Channel, wanted: Wanted) -> None:
    now = db.must_write()
    row.name = read_name(wanted.name)
    db.alone("names a channel")
    if Channel.objects.filter(name=row.name, removed_at__isnull=True).exclude(pk=row.pk).exists():
        raise BadChannel(f"there is a channel {row.name} already: choose another name")
    if row.way == Way.WEBHOOK:
        if len(wanted.allowed) > MOST_ALLOWED:
            raise BadChannel(f"at most {MOST_ALLOWED} places can be allowed")
        try:
            row.url = read_url(wanted.url).url
            row.allowed = sorted({read_place(place) for place in wanted.allowed})
        except Refused as error:
            raise BadChannel(str(error)) from error
        row.slack, row.to = wanted.slack, []
    else:
        row.url, row.allowed, row.slack, row.to = "", [], False, list(wanted.to)
    row.agent, row.tool, row.after, row.remind = wanted.agent, wanted.tool, wanted.after, wanted.remind
    row.tells_end, row.with_arguments, row.changed_at = wanted.tells_end, wanted.with_arguments, now


def _locked(channel: UUID) -> Channel:
    row = Channel.objects.select_for_update().filter(pk=channel, removed_at__isnull=True).first()
    if row is None:
        raise BadChannel("there is no such channel any more")
    return row


def _shown(row: Channel) -> dict[str, Any]:
    """A channel for the audit log. A webhook's path often is its credential, so only its host is noted."""
    where = {"host": urlsplit(row.url).netloc, "allowed": row.allowed} if row.way == Way.WEBHOOK else {"to": row.to}
    told = {"agent": row.agent, "tool": row.tool, "after": row.after, "remind": row.remind}
    return {"way": row.way, **where, **told, "tells_end": row.tells_end, "with_arguments": row.with_arguments}
