"""What is known of a trial when it is over: from the database, the pages, and the provider's ledger."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.faults.lab.draw import Trial
from tests.faults.lab.provider import ENDS


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the ledger, on its own clock."""

    at: float
    what: str
    key: str
    digest: str
    resume: Mapping[str, Any] | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """One attempt as the journal has it."""

    number: int
    state: str
    reason: str
    started_at: datetime
    ended_at: datetime | None
    limit_at: datetime
    went_out: bool
    resumed_from: float | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """One event of the job."""

    seq: int
    kind: str
    mine: bool  # of this call
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """`canceled_at` is when the lab saw the call CANCELED, on the ledger's clock. Pages are the HTML a person gets.

    `deaf` says that for a part of its time its server could not be told anything, by another trial's fault.
    """

    trial: Trial
    key: str
    digest: str
    state: str
    effect: str
    final: bool
    job_state: str
    job_over: bool
    asked: bool  # a person is asked
    attempts: tuple[Made, ...] = ()
    answers: tuple[str, ...] = ()
    events: tuple[Noted, ...] = ()
    counted: int = 0  # events, by the job's counter
    ledger: tuple[Line, ...] = ()
    canceled_at: float | None = None
    call_page: str = ""
    job_page: str = ""
    deaf: bool = False
    hit: frozenset[str] = field(default_factory=frozenset)

    def lines(self, *what: str) -> list[Line]:
        """The lines of these kinds, in order."""
        return [line for line in self.ledger if line.what in what]

    @property
    def effects(self) -> int:
        """How often the call wrote."""
        return len(self.lines("effect"))

    @property
    def again(self) -> int:
        """How often a person had it run again."""
        return self.answers.count("again")

    @property
    def spans(self) -> list[tuple[float, float]]:
        """From when to when each attempt ran at the server; one whose server was killed ends with that."""
        began, spans = [], []
        for line in self.ledger:
            if line.what == "received":
                began.append(line.at)
            elif line.what in ENDS and began:
                spans.append((began.pop(0), line.at))
        return spans + [(at, float("inf")) for at in began]
