"""Sending the traces of jobs that are over: claimed from committed rows, sent outside any transaction, and settled.

No call, turn or job waits for it: a collector that hangs or is gone only has the rows wait, which are there anyway.
What is claimed and never settled is claimed anew after a while, and sent twice under the same ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from base import db
from base.addresses import Refused, read_place, read_url
from jobs.models import Exporter
from jobs.queries.exported import ended_after
from jobs.rules.spans import JobFacts, Span, as_otlp, spans
from jobs.sessions import otlp
from jobs.sessions.otlp import Sent
from tenants.models import Tenant
from tenants.operations import audit, vault
from tenants.rules.who import Actor

SECRET: Final = "exporter header"  # noqa: S105 - what the vault calls it
PATH: Final = "/v1/traces"
LOOK: Final = timedelta(seconds=5)  # between two looks, when there was nothing to send
LEASE: Final = timedelta(minutes=5)  # after which what was claimed is claimed anew
# A transaction that ends a job bears the time of its beginning: one that took so long would be passed over.
SETTLED: Final = timedelta(seconds=10)
AT_ONCE: Final = 500  # spans in one request
BACKOFF: Final = (10, 30, 120, 600, 1800)  # seconds; the last one repeats
MOST_WAIT: Final = 3600.0  # seconds that a collector may ask for
MOST_ALLOWED: Final = 10
HEADER_TEXT: Final = 4096  # characters of the header's value at most
VERSION: Final = "1"


class BadExporter(ValueError):
    """A collector that cannot be sent to so. The message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be sent, and where. `headers` hold a secret."""

    tenant: UUID
    exporter: UUID
    url: str
    allowed: Sequence[str]
    headers: dict[str, str] = field(repr=False)
    workspace: str
    jobs: Sequence[JobFacts]
    until: datetime
    tries: int
    settings: tuple[Any, ...] = ()  # by which it was claimed


def save(*, tenant: UUID, url: str, allowed: Sequence[str], header: str, value: str | None, actor: Actor) -> None:
    """Send traces there from now on. `value` is the header's, or None to keep the one that is kept.

    Raises `BadExporter`.
    """
    try:
        target = read_url(url)
        places = sorted({read_place(place) for place in allowed})
    except Refused as error:
        raise BadExporter(str(error)) from error
    if len(places) > MOST_ALLOWED:
        raise BadExporter(f"at most {MOST_ALLOWED} places can be allowed")
    header = _header(header, value)
    with db.write(tenant) as now:
        db.alone("sets the collector")
        row = Exporter.objects.select_for_update().first()
        before = None if row is None else _shown(row)
        row = row or Exporter(tenant_id=tenant, since=now, made_at=now)
        if before is not None and (row.url, row.header) != (target.url, header) and value is None and header:
            raise BadExporter("the address or the header's name is another one: enter its value again")
        row.url, row.allowed, row.header = target.url, places, header
        row.on, row.due_at, row.tries, row.trouble = True, now, 0, ""
        row.save()
        if not header:
            vault.drop(SECRET)
        elif value is not None:
            vault.put(SECRET, value)
        audit.record(actor, "exporter.saved", "exporter", before=before, after=_shown(row))


def turn(*, tenant: UUID, on: bool, actor: Actor) -> None:
    """Send no more, or again; what ended in between is not sent."""
    with db.write(tenant) as now:
        row = Exporter.objects.select_for_update().first()
        if row is None or row.on == on:
            return
        row.on, row.tries, row.trouble, row.due_at = on, 0, "", now
        if on:
            row.since, row.last = now, None
        row.save()
        audit.record(actor, "exporter.on" if on else "exporter.off", "exporter")


def remove(*, tenant: UUID, actor: Actor) -> None:
    """Forget where traces go, and the secret with it."""
    with db.write(tenant):
        row = Exporter.objects.select_for_update().first()
        if row is None:
            return
        vault.drop(SECRET)
        audit.record(actor, "exporter.removed", "exporter", before=_shown(row))
        row.delete()


def claim(*, tenant: UUID, exporter: UUID) -> Work | None:
    """Take what is to be sent; None when there is nothing, or somebody else has it."""
    with db.write(tenant) as now:
        due = Exporter.objects.select_for_update(no_key=True, skip_locked=True)
        row = due.filter(pk=exporter, on=True, due_at__lte=now).first()
        if row is None:
            return None
        jobs = ended_after(row.since, row.last, until=now - SETTLED)
        row.due_at = now + (LEASE if jobs else LOOK)
        row.save(update_fields=["due_at"])
        if not jobs:
            return None
        try:
            headers = {row.header: vault.get(tenant, SECRET)} if row.header else {}
        except vault.NoSecret as error:
            row.on, row.trouble = False, f"Turned off: {error}."
            row.save(update_fields=["on", "trouble"])
            return None
        return Work(
            tenant=tenant,
            exporter=row.pk,
            url=_traces_at(row.url),
            allowed=tuple(row.allowed),
            headers=headers,
            workspace=Tenant.objects.values_list("slug", flat=True).get(pk=tenant),
            jobs=jobs,
            until=jobs[-1].ended,
            tries=row.tries,
            settings=_settings(row),
        )


def send(work: Work) -> Sent:
    """Send it, in as many requests as it takes; the first that does not arrive ends it."""
    whole: list[Span] = [span for job in work.jobs for span in spans(job)]
    resource = {"service.name": "oz0-studio", "oz0.workspace": work.workspace}
    trouble = ""
    for first in range(0, len(whole), AT_ONCE):
        body = as_otlp(whole[first : first + AT_ONCE], resource=resource, version=VERSION)
        sent = otlp.post(work.url, headers=work.headers, body=body, allowed=work.allowed)
        if not sent.arrived:
            return sent
        trouble = sent.trouble or trouble
    return Sent(True, trouble)


def settle(work: Work, sent: Sent, *, jitter: float) -> None:
    """Keep how it ended. What can never arrive is passed over; `jitter` is from 0 to 1."""
    with db.write(work.tenant) as now:
        row = Exporter.objects.select_for_update().filter(pk=work.exporter).first()
        if row is None or _settings(row) != work.settings:
            return  # it was turned or saved meanwhile, and goes by what holds now
        row.trouble = sent.trouble
        if sent.arrived or not sent.again:
            row.since, row.last, row.tries, row.due_at = work.until, work.jobs[-1].id, 0, now
        if sent.arrived:
            row.sent, row.sent_at = row.sent + len(work.jobs), now
        elif sent.again:
            wait = BACKOFF[min(row.tries, len(BACKOFF) - 1)] * (0.75 + jitter / 2)
            row.tries, row.due_at = row.tries + 1, now + timedelta(seconds=max(wait, min(sent.wait or 0.0, MOST_WAIT)))
        else:
            row.trouble = f"{sent.trouble} {len(work.jobs)} jobs were passed over."
        row.save()


def _settings(row: Exporter) -> tuple[Any, ...]:
    return row.on, row.since, row.last, row.url, row.header, tuple(row.allowed)


def _traces_at(url: str) -> str:
    """A collector's address is written with or without the path that OTLP has for traces."""
    return url if url.split("?")[0].rstrip("/").endswith(PATH) else url.rstrip("/") + PATH


def _header(name: str, value: str | None) -> str:
    name = name.strip()
    if not name:
        if value:
            raise BadExporter("a value needs the name of its header, such as Authorization")
        return ""
    if len(name) > 100 or not name.isascii() or not name.replace("-", "").isalnum():
        raise BadExporter("a header's name is letters, digits and hyphens, such as Authorization")
    if value is not None and (not value.isascii() or not value.isprintable() or not 0 < len(value) <= HEADER_TEXT):
        raise BadExporter(f"a header's value is 1 to {HEADER_TEXT} printable characters of ASCII")
    return name


def _shown(row: Exporter) -> dict[str, Any]:
    return {"url": row.url, "allowed": row.allowed, "header": row.header, "on": row.on}
