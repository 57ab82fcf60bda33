"""The work of a load: jobs begun at a rate, people who answer and cancel, and what is still open."""

import json
import random
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Final
from uuid import UUID

from base import db
from jobs.models import Hold, Job, Starter
from jobs.operations import intake
from jobs.operations.holds import BadAnswer
from jobs.rules.states import JOB_FINAL, HoldKind, JobState
from tests.faults.lab import node_side
from tests.faults.lab.course import cancel_as
from tests.faults.lab.load_stand import LoadStand
from tests.waiting import until

MIX: Final = {"reader": 30, "noter": 25, "charger": 25, "wiper": 3, "clerk": 17}  # agents, per cent of jobs
LONGEST: Final = 0.4  # seconds that a function works, at most, before its effect and again after it
PATIENCE: Final = (3.0, 8.0)  # seconds that a person takes to answer
CANCELED: Final = 0.01  # the share of jobs that somebody cancels
LIVE: Final = sorted(frozenset(JobState) - JOB_FINAL)
AT_ONCE: Final = 10  # jobs begun between two looks, when the driver was late


class Work:
    """`begun` is how many jobs there are; `skipped` how many were due while too many were open."""

    def __init__(self, load: LoadStand, dice: random.Random) -> None:
        self.begun = 0
        self.skipped = 0
        self.counted: Final[Counter[str]] = Counter()
        self.recent: list[UUID] = []
        self._load = load
        self._stand = load.stand
        self._dice = dice
        self._asked: dict[UUID, float] = {}  # question → when it is answered
        self._to_cancel: list[tuple[float, UUID]] = []
        self._effects: set[str] = set()  # keys under which something was written
        self._read = 0

    def begin(self) -> None:
        """Start one job."""
        self.begun += 1
        (agent,) = self._dice.choices(list(MIX), list(MIX.values()))
        plan = {when: round(self._dice.uniform(0.0, LONGEST), 2) for when in ("before", "after")}
        job = intake.start_job(
            tenant=self._stand.tenant,
            agent=agent,
            given={"trial": str(self.begun), "plan": json.dumps(plan)},
            starter=Starter.PERSON,
            person=self._stand.person,
            title=f"{agent} {self.begun}",
        )
        self.recent = [*self.recent[-19:], job]
        if self._dice.random() < CANCELED:
            self._to_cancel.append((time.monotonic() + self._dice.uniform(0.0, 3.0), job))

    def open(self) -> int:
        """How many jobs have not ended."""
        with db.read(self._stand.tenant):
            return Job.objects.filter(state__in=LIVE).count()

    def ended_within(self, seconds: float) -> int:
        """How many jobs have ended in the last seconds, by the database's clock."""
        with db.read(self._stand.tenant) as now:
            return Job.objects.filter(ended_at__gt=now - timedelta(seconds=seconds)).count()

    def tend(self) -> None:
        """Answer what has waited long enough, and cancel what is to be cancelled."""
        now = time.monotonic()
        with db.read(self._stand.tenant):
            holds = list(Hold.objects.filter(closed_at__isnull=True).select_related("call"))
        open_ = {hold.pk for hold in holds}
        self._asked = {pk: at for pk, at in self._asked.items() if pk in open_}
        for hold in holds:
            if self._asked.setdefault(hold.pk, now + self._dice.uniform(*PATIENCE)) <= now:
                self._answer(hold)
        for pair in [pair for pair in self._to_cancel if pair[0] <= now]:
            self._to_cancel.remove(pair)
            self.counted["jobs that somebody cancels"] += 1
            cancel_as(self._stand.person, self._stand.tenant, pair[1])

    def settle(self, seconds: float) -> None:
        """Go on answering until every job has ended; one that does not by then is for the invariants to tell."""

        def settled() -> bool:
            self._load.tend()
            self.tend()
            return not self.open()

        with suppress(AssertionError):
            until(settled, "a job never ended", seconds)

    def _answer(self, hold: Hold) -> None:
        said = self._said(hold)
        words = {"tenant": str(self._stand.tenant), "hold": str(hold.pk), "person": self._stand.person, "said": said}
        with suppress(BadAnswer):
            node_side.answer(**words)
            self.counted[f"answered {said}, to {hold.kind}"] += 1

    def _said(self, hold: Hold) -> str:
        """Most people look at the system that was written to; some just run it again, some stop."""
        draw = self._dice.random()
        if hold.kind != HoldKind.UNKNOWN:
            return "approve" if draw < 0.8 else "deny"
        if draw < 0.8:
            self._read_ledger()
            return "happened" if hold.call.key in self._effects else "again"
        return "again" if draw < 0.9 else "stop"

    def _read_ledger(self) -> None:
        with self._load.ledger.open() as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole)
        lines = map(json.loads, whole.splitlines())
        self._effects |= {line["key"] for line in lines if line["what"] == "effect"}
