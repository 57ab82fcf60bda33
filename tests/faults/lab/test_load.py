"""The controls of a load: what grows is called growing, and bulk evidence made wrong on purpose is caught by name."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from base import db
from catalog.models import Agent
from jobs.models import Call, Starter
from jobs.operations import intake
from jobs.rules.orders import End
from studio import embedded
from tests.builders import a_turn, a_world, an_order, an_outcome, see, settle
from tests.faults.lab import bulk
from tests.faults.lab.course import digest_of
from tests.faults.lab.draw import Trial
from tests.faults.lab.flatness import growth

HOUR = range(0, 3600, 10)
PLAN = {"before": 0.1, "after": 0.1}


def series(at: Callable[[float], float]) -> list[tuple[float, float]]:
    return [(float(second), at(second)) for second in HOUR]


@pytest.mark.parametrize(
    ("at", "grows"),
    [
        (lambda s: 100.0, False),
        (lambda s: 100 + 20 * s / 3600, True),
        (lambda s: 100 + 12 * s / 3600, False),  # below what its floor allows
        (lambda s: 1000 + 60 * s / 3600, False),  # below a tenth of the mean
        (lambda s: 1000 + 150 * s / 3600, True),
        (lambda s: 100 + 15 * math.sin(s / 70), False),  # it breathes
        (lambda s: 100 + 15 * math.sin(s / 70) + 40 * s / 3600, True),
        (lambda s: min(100.0, 20 + s / 5), False),  # it warms up
        (lambda s: 300 - 100 * s / 3600, False),
    ],
    ids=["flat", "20 MB", "12 MB", "6 %", "15 %", "breathing", "breathing and growing", "warming up", "shrinking"],
)
def test_what_rises_by_more_than_its_bound_after_the_warm_up_grows(at: Callable[[float], float], grows: bool) -> None:
    found = growth("a process", series(at))
    assert found.long_enough
    assert found.grows is grows


def test_a_run_that_is_too_short_to_judge_by_says_so() -> None:
    found = growth("a process", series(lambda s: 100 + s)[:60])
    assert (found.long_enough, found.grows) == (False, False)
    assert found.per_hour == pytest.approx(3600)


class Recorded:
    """Calls that were made, and a ledger with what the provider would have written of them."""

    def __init__(self, path: Path, url_admin: str) -> None:
        self.world = a_world("lab")
        with db.write(self.world.tenant):
            agent = Agent.objects.get()
            agent.definition |= {"input": {"trial": "", "plan": ""}}
            agent.save(update_fields=["definition"])
        self.path = path
        self.url_admin = url_admin
        self.begun = 0

    def call(self, function: str) -> Call:
        """A call that is due, of a job of its own."""
        self.begun += 1
        given = {"trial": str(self.begun), "plan": json.dumps(PLAN)}
        job = intake.start_job(
            tenant=self.world.tenant,
            agent=self.world.agent,
            given=given,
            starter=Starter.PERSON,
            person=self.world.person,
            title="A job",
        )
        return see(self.world, Call, a_turn(self.world, job, function)[0])

    def made(self, function: str, *lines: str) -> Call:
        """A call that was answered after the provider wrote these lines, and whose job has ended."""
        call = self.call(function)
        order = an_order(self.world, call.pk)
        self.write(call.key, *lines)
        settle(self.world, order, an_outcome(End.ANSWERED))
        a_turn(self.world, call.job_id, say="Done.")
        return call

    def write(self, key: str, *lines: str) -> None:
        """Add lines to the ledger, as of the last job."""
        trial = str(self.begun)
        digest = digest_of(Trial(0, "", "", "", "", PLAN, ""), trial)
        with self.path.open("a") as file:
            for what in lines:
                line = {"at": time.monotonic(), "what": what, "key": key, "digest": digest, "trial": trial}
                file.write(json.dumps(line) + "\n")

    def forget_an_event(self) -> None:
        """Take one from the middle of the first job's."""
        self.admin("DELETE FROM jobs_event WHERE seq = 2 AND job_id = (SELECT min(id::text)::uuid FROM jobs_job)")

    def start_before_the_end(self) -> None:
        """A retried call's second attempt began before its first had ended."""
        call = self.call("look")
        for end in (End.BROKEN, End.ANSWERED):
            self.admin("UPDATE jobs_call SET due_at = now() WHERE due_at IS NOT NULL")
            settle(self.world, an_order(self.world, call.pk), an_outcome(end))
        self.admin("UPDATE jobs_attempt SET started_at = started_at - interval '1 minute' WHERE number = 2")

    def admin(self, statement: str) -> None:
        """Do what no role of the product may."""
        with psycopg.connect(self.url_admin, autocommit=True) as admin:
            admin.execute("SET session_replication_role = replica")
            admin.execute(statement)

    def wrong(self) -> set[str]:
        """The names of the invariants that do not hold, and what does not hold overall."""
        ledger = bulk.read_ledger(self.path)
        found: set[str] = set()
        keys = set()
        for _, _, seen in bulk.evidence(self.world.tenant, ledger):
            keys.add(seen.key)
            found |= {violation.invariant for violation in bulk.broken_in(seen)}
        return found | set(bulk.broken_overall(self.url_admin, begun=self.begun, keys=keys, ledger=ledger))


ONCE = ("received", "effect", "replied")


@pytest.fixture
def recorded(database: embedded.Postgres, tmp_path: Path) -> Recorded:
    """A read, a plain write and a keyed write, all as they should be."""
    made = Recorded(tmp_path / "ledger.jsonl", database.url_admin)
    made.made("look", "received", "replied")
    made.made("note", *ONCE)
    made.made("charge", *ONCE)
    return made


def test_evidence_in_order_violates_nothing_in_bulk(recorded: Recorded) -> None:
    assert recorded.wrong() == set()


@pytest.mark.parametrize(
    ("wrong", "caught"),
    [
        (lambda run: run.made("note", *ONCE, "effect"), "plain_writes_at_most_once"),
        (lambda run: run.made("charge", *ONCE, "effect"), "keyed_writes_once_per_key"),
        (lambda run: run.made("note", "received", "replied"), "success_is_one_effect"),
        (lambda run: run.made("look"), "success_is_one_effect"),
        (lambda run: run.made("look", "received", "replied", "received", "replied"), "sent_as_recorded"),
        (lambda run: run.call("note"), "everything_ends"),
        (lambda run: run.write("somebody/1", *ONCE), "the ledger has 1 keys of no call, such as 'somebody/1'"),
        (lambda run: run.forget_an_event(), "events_tell_all"),
        (lambda run: run.forget_an_event(), "1 jobs whose events have a gap"),
        (lambda run: run.start_before_the_end(), "attempts_are_apart"),
    ],
)
def test_what_is_made_wrong_on_purpose_is_caught_in_bulk(
    wrong: Callable[[Recorded], Any], caught: str, recorded: Recorded
) -> None:
    wrong(recorded)
    assert caught in recorded.wrong()


def test_a_job_that_was_never_kept_is_missed(recorded: Recorded) -> None:
    recorded.begun += 1
    assert recorded.wrong() == {"3 jobs are in the database, and 4 were begun"}
