"""The lab's invariants for thousands of calls at once: evidence read in bulk, and what is true of a run as a whole."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import batched
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg
from django.test import Client

from base import db, ids
from jobs.models import Attempt, Call, Event, Hold, Job, JobCounter
from jobs.rules.states import CALL_FINAL, JOB_FINAL
from tests.faults.lab.course import digest_of
from tests.faults.lab.draw import Trial
from tests.faults.lab.evidence import Evidence, Line, Made, Noted
from tests.faults.lab.invariants import INVARIANTS, Violation, maybe_is_shown, pages_show_the_states

ROUGHLY: Final = 0.05  # seconds between two clocks of one machine
AT_ONCE: Final = 400  # jobs read together
PAGED: Final = (maybe_is_shown, pages_show_the_states)
BARE: Final = tuple(invariant for invariant in INVARIANTS if invariant not in PAGED)
LEFT: Final = {
    "jobs that have not ended": "SELECT count(*) FROM jobs_job WHERE ended_at IS NULL",
    "calls that have not ended": "SELECT count(*) FROM jobs_call WHERE ended_at IS NULL",
    "attempts that nobody closed": "SELECT count(*) FROM jobs_attempt WHERE ended_at IS NULL",
    "questions to the model that nobody closed": "SELECT count(*) FROM jobs_turn WHERE ended_at IS NULL",
    "questions to people that are still open": "SELECT count(*) FROM jobs_hold WHERE closed_at IS NULL",
    "jobs whose events have a gap": """
        SELECT count(*) FROM jobs_jobcounter counter
        LEFT JOIN (SELECT job_id, count(*) AS many, max(seq) AS newest FROM jobs_event GROUP BY job_id) told
        ON told.job_id = counter.job_id
        WHERE counter.events <> coalesce(told.many, 0) OR counter.events <> coalesce(told.newest, 0)""",
}

type Ledger = Mapping[str, list[Line]]


def read_ledger(path: Path) -> Ledger:
    """The provider's lines by key, in their order."""
    found: defaultdict[str, list[Line]] = defaultdict(list)
    with path.open() as file:
        for raw in file:
            line = json.loads(raw)
            found[line["key"]].append(Line(line["at"], line["what"], line["key"], line["digest"]))
    return dict(found)


def evidence(tenant: UUID, ledger: Ledger) -> Iterator[tuple[UUID, UUID, Evidence]]:
    """The job, the call and the evidence of every call there is, without its pages."""
    with db.read(tenant) as now:
        jobs = list(Job.objects.order_by("pk").values_list("pk", flat=True))
    clock = timedelta(seconds=time.monotonic()), now
    for some in batched(jobs, AT_ONCE):
        yield from _of(tenant, list(some), ledger, clock)


def _of(tenant: UUID, jobs: list[UUID], ledger: Ledger, clock: tuple[timedelta, Any]) -> Iterator[Any]:
    attempts: defaultdict[UUID, list[Made]] = defaultdict(list)
    answers: defaultdict[UUID, list[str]] = defaultdict(list)
    events: defaultdict[UUID, list[Event]] = defaultdict(list)
    asked: set[UUID] = set()
    with db.read(tenant):
        rows = Job.objects.in_bulk(jobs)
        calls = list(Call.objects.filter(job_id__in=jobs).order_by("job_id", "activity"))
        for one in Attempt.objects.filter(job_id__in=jobs).order_by("call_id", "number"):
            attempts[one.call_id].append(made_of(one))
        for hold in Hold.objects.filter(job_id__in=jobs).order_by("opened_at"):
            if hold.answer:
                answers[hold.call_id].append(hold.answer)
            if hold.closed_at is None:
                asked.add(hold.call_id)
        for event in Event.objects.filter(job_id__in=jobs).order_by("job_id", "seq"):
            events[event.job_id].append(event)
        counted = dict(JobCounter.objects.filter(job_id__in=jobs).values_list("job_id", "events"))
    for call in calls:
        job = rows[call.job_id]
        trial = Trial(
            0, call.tool_slug, call.function_name, "load", "", json.loads(job.input["plan"]), says="as people do"
        )
        canceled_at = None
        if call.state == "CANCELED" and call.ended_at is not None:
            monotonic, now = clock
            canceled_at = (monotonic - (now - call.ended_at)).total_seconds() + ROUGHLY
        yield (
            job.pk,
            call.pk,
            Evidence(
                trial=trial,
                key=call.key,
                digest=digest_of(trial, job.input["trial"]),
                state=call.state,
                effect=call.effect,
                final=call.state in CALL_FINAL,
                job_state=job.state,
                job_over=job.state in JOB_FINAL,
                asked=call.pk in asked,
                attempts=tuple(attempts[call.pk]),
                answers=tuple(answers[call.pk]),
                events=tuple(Noted(one.seq, one.kind, one.call == call.pk, one.data) for one in events[job.pk]),
                counted=counted[job.pk],
                ledger=tuple(ledger.get(call.key, ())),
                canceled_at=canceled_at,
            ),
        )


def made_of(attempt: Attempt) -> Made:
    """An attempt's row as evidence."""
    return Made(
        attempt.number,
        attempt.state,
        attempt.reason,
        attempt.started_at,
        attempt.ended_at,
        attempt.limit_at,
        bool((attempt.wire or {}).get("went_out")),
        attempt.resumed_from,
    )


def with_pages(seen: Evidence, client: Client, job: UUID, call: UUID) -> Evidence:
    """The same, with what a person gets to see."""
    pages = [client.get(f"/calls/{ids.show(ids.CALL, call)}/"), client.get(f"/jobs/{ids.show(ids.JOB, job)}/")]
    shown = [page.content.decode() if page.status_code == 200 else f"status {page.status_code}" for page in pages]
    return replace(seen, call_page=shown[0], job_page=shown[1])


def broken_in(seen: Evidence) -> list[Violation]:
    """What does not hold of a call; its pages are looked at when it has them."""
    invariants = INVARIANTS if seen.call_page else BARE
    return [Violation(holds.__name__, what) for holds in invariants for what in holds(seen)]


def telling(seen: Evidence) -> bool:
    """Whether more happened to it than one attempt that was answered."""
    return len(seen.attempts) != 1 or bool(seen.answers) or seen.state not in ("SUCCEEDED", "ERRORED")


def broken_overall(url_admin: str, *, begun: int, keys: set[str], ledger: Ledger) -> list[str]:
    """What does not hold of a settled run as a whole. `keys` are those of every call."""
    found = []
    with psycopg.connect(url_admin, autocommit=True) as admin:
        for what, query in LEFT.items():
            row = admin.execute(query).fetchone()
            if row is None or row[0]:
                found.append(f"{row[0] if row else 'no'} {what}")
        row = admin.execute("SELECT count(*) FROM jobs_job").fetchone()
        if row is None or row[0] != begun:
            found.append(f"{row[0] if row else 'no'} jobs are in the database, and {begun} were begun")
    stray = [key for key in ledger if key not in keys]
    if stray:
        found.append(f"the ledger has {len(stray)} keys of no call, such as {stray[0]!r}")
    return found
