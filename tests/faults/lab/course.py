"""One trial from its job's start to its evidence, a step at a time: many go on side by side."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from jobs.models import Attempt, Call, Hold, Job
from jobs.operations import cancel
from jobs.rules.states import CALL_FINAL, JOB_FINAL, CallState, HoldKind
from tenants.rules.who import Actor
from tests.faults.lab.draw import Trial
from tests.faults.lab.evidence import Line
from tests.faults.lab.provider import ENDS

PATIENCE: Final = 0.4  # seconds that a person takes to answer
PATIENT: Final = 3  # questions about one call; what still goes wrong then is stopped
QUIET: Final = 1.5  # seconds after everything has ended in which nothing more may come
HANGS_ON: Final = 16.0  # seconds that a function which cannot be stopped may still run
ENOUGH: Final = 480.0  # seconds after which a trial has not come to its end


@dataclass(slots=True)
class Seen:
    """What the database says of a trial's job just now."""

    job: Job
    call: Call | None = None
    open: Attempt | None = None
    hold: Hold | None = None


@dataclass(slots=True)
class Means:
    """What a course acts with."""

    strike: Callable[[str, UUID | None], None]
    refuse: Callable[[str], None]
    answer: Callable[[Hold, str], None]
    cancel: Callable[[UUID], None]
    switch: Callable[[str], None]


@dataclass(slots=True)
class Course:
    """`step` is taken again and again until `over`."""

    trial: Trial
    job: UUID
    means: Means
    began: float = field(default_factory=time.monotonic)
    lines: list[Line] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    canceled_at: float | None = None
    over: bool = False
    stuck: bool = False
    _struck: bool = False
    _asked_at: dict[UUID, float] = field(default_factory=dict)
    _answered: dict[UUID, int] = field(default_factory=dict)
    _ended_at: float = 0.0

    def step(self, seen: Seen) -> None:
        """Look, and do what is due."""
        now = time.monotonic()
        call = seen.call
        if call is not None and call.state == CallState.CANCELED and self.canceled_at is None:
            self.canceled_at = now
        if not self._struck and self._at_its_moment(seen):
            self._struck = True
            self._strike(seen)
        elif seen.hold is not None:
            self._answer(seen.hold, now)
        ended = seen.job.state in JOB_FINAL and (call is None or call.state in CALL_FINAL)
        if ended and not self._ended_at:
            self._ended_at = now
        quiet = max(self._ended_at, self.lines[-1].at if self.lines else 0.0)
        all_ended = sum(line.what == "received" for line in self.lines) <= sum(line.what in ENDS for line in self.lines)
        if ended and now - quiet > QUIET and (all_ended or now - self._ended_at > HANGS_ON):
            self.over = True
        if now - self.began > ENOUGH:
            self.over = self.stuck = True

    def _at_its_moment(self, seen: Seen) -> bool:
        if self.trial.fault == "refused":
            return True
        call = seen.call
        match self.trial.moment:
            case "queued":
                return call is not None
            case "received" | "effect":
                return any(line.what == self.trial.moment for line in self.lines)
            case "retrying":
                return call is not None and call.state == CallState.RETRYING
            case "asked":
                return seen.hold is not None
            case _:
                return False

    def _strike(self, seen: Seen) -> None:
        if self.trial.fault == "cancel":
            self.means.cancel(self.job)
        elif self.trial.fault == "switch":
            self.means.switch(f"{self.trial.server}.{self.trial.function}")
        elif self.trial.fault == "refused":
            self.means.refuse(self.trial.server)
        else:
            self.means.strike(self.trial.fault, seen.open.node_id if seen.open is not None else None)

    def _answer(self, hold: Hold, now: float) -> None:
        """A person answers after a while; once more when the process that was to do it died over it."""
        if now - self._asked_at.setdefault(hold.pk, now) < PATIENCE:
            return
        times = self._answered.get(hold.pk, 0)
        if times and now - self._asked_at[hold.pk] < PATIENCE + 5.0 * times:
            return
        self._answered[hold.pk] = times + 1
        self.means.answer(hold, "stop" if len(self._answered) > PATIENT else self._said(hold))

    def _said(self, hold: Hold) -> str:
        if hold.kind != HoldKind.UNKNOWN:
            return {"truth": "approve", "again": "approve", "stop": "deny"}[self.trial.says]
        if self.trial.says == "truth":
            return "happened" if any(line.what == "effect" for line in self.lines) else "again"
        return self.trial.says


def digest_of(trial: Trial, name: str) -> str:
    """What the server makes of a trial's arguments."""
    return hashlib.sha256(json.dumps([name, json.dumps(trial.plan)]).encode()).hexdigest()


def cancel_as(person: int, tenant: UUID, job: UUID) -> None:
    """A person cancels a job that may be over by now."""
    try:
        cancel.cancel_job(tenant=tenant, job_id=job, by=Actor("pat", "link, 127.0.0.1", person))
    except cancel.AlreadyOver:
        return
