"""What programs send and read of jobs and calls."""

from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from base import ids
from base.api_words import Limit, Name, Words, cursor
from jobs.models import Starter
from jobs.rules.states import AttemptState, CallState, Effect, HoldKind, HoldState, JobState


class StartIn(Schema):
    """The job to start. `input` holds some of the agent's own inputs by name, and the rest stay as its file says."""

    model_config = ConfigDict(extra="forbid")

    agent: Name
    input: dict[str, Any] = Field(default_factory=dict)
    title: Words = ""


class JobsIn(Schema):
    """Which jobs a list holds, the newest first."""

    state: JobState | None = None
    live: bool | None = Field(None, description="Only those that are not over, or only those that are.")
    agent: Words = ""
    starter: Starter | None = None
    q: Words = Field("", description="Words that the title or the agent's name holds.")
    function: Words = Field("", description="`tool.function` that the job called.")
    after: str = cursor(ids.JOB)
    limit: Limit = 50


class JobLine(Schema):
    """A job in a list. `why` says how it came to its end; `asks` counts its open questions.

    It counts as a job of the person `started_by`, and `through` is the name of the token, routine or hook.
    """

    id: str
    title: str
    agent: str
    state: JobState
    over: bool
    why: str
    failure_kind: str
    starter: Starter
    started_by: str
    through: str
    calls: int
    asks: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    url: str


class JobsOut(Schema):
    """A page of jobs; `next` is what to give as `after` when there are more."""

    now: datetime
    jobs: list[JobLine]
    next: str | None


class JobOut(Schema):
    """A job. `output` is what its agent said in the end; `may_have_done` what nobody knows of it."""

    id: str
    title: str
    agent: str
    plugin_version: str
    state: JobState
    over: bool
    why: str
    failure_kind: str
    starter: Starter
    started_by: str
    through: str
    input: Any
    output: str
    calls: int
    turns: int
    tokens: int
    may_have_done: str
    stop_asked_by: str
    stop_asked_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    url: str


class EventsIn(Schema):
    """From where a job's journal is read."""

    after: int = Field(0, ge=0, le=2**53 - 1, description="The number of the last event that was read.")


class EventOut(Schema):
    """One event. `seq` counts from 1 without gaps; what `data` holds goes by `kind`."""

    seq: int
    kind: str
    at: datetime
    call: str | None
    data: dict[str, Any]


class EventsOut(Schema):
    """Events in order. `next` is what to give as `after`; `more` that there are some already; `over` that none come."""

    events: list[EventOut]
    next: int
    more: bool
    over: bool


class CallIn(Schema):
    """What of a call is loaded although it is large."""

    whole: Literal["", "arguments", "result"] = ""


class Value(Schema):
    """A value; `left_out` says that it is large, `size` its bytes, and `?whole=` loads it."""

    value: Any = None
    size: int
    left_out: bool


class AttemptOut(Schema):
    """One try of a call, with the evidence of how it ended."""

    id: str
    number: int
    state: AttemptState
    why: str
    wire: str
    evidence: str
    node: str
    started_at: datetime
    limit_at: datetime
    ended_at: datetime | None
    progress: str
    began: str
    retry_after: float | None


class QuestionOut(Schema):
    """One question that was asked about a call."""

    id: str
    kind: HoldKind
    state: HoldState
    why: str
    says: str
    note: str
    opened_at: datetime
    closed_at: datetime | None


class CallOut(Schema):
    """A call with its attempts and the questions that were asked about it.

    Of a tool that is marked sensitive a viewer's token reads `hidden from viewers…` in place of values.
    """

    id: str
    job: str
    function: str
    kind: str
    state: CallState
    over: bool
    effect: Effect
    why: str
    detail: str
    says: str
    rule: str
    key: str
    retry_safe: bool
    arguments: Value
    result: Value
    result_text: str
    attempts: list[AttemptOut]
    questions: list[QuestionOut]
    open_question: str | None
    again_of: str | None
    created_at: datetime
    ended_at: datetime | None
    url: str
