"""What programs send to the spend journal and read of it.

Amounts are US dollars as texts of decimal numbers, so that no reader rounds them. Ids of operations, reservations and
calls are UUIDs in their canonical spelling; cursors are what an answer before said under `next`.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

from ninja import Schema
from pydantic import (
    AfterValidator,
    AwareDatetime,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    StringConstraints,
    WithJsonSchema,
)

from base import ids
from base.api_words import NO_NUL, NO_NUL_PATTERN, Limit, Mistake
from base.api_words import cursor as cursor_of
from budgets.rules.checks import Check, Used
from budgets.rules.events import Told
from budgets.rules.identity import CANONICAL_V7
from budgets.rules.words import (
    LONGEST_MODEL,
    LONGEST_NAME,
    LONGEST_WORD,
    MODALITY,
    MOST_CHECKS,
    MOST_FALLBACKS,
    MOST_TAGS,
    MOST_TOKENS,
    DuplicateBy,
    EventStatus,
    ItemError,
    ItemState,
    KeyScope,
    LimitMode,
    Modality,
    OperationState,
    Period,
    Rejection,
)

MOST_EVENTS: Final = 1_000


def _of_our_time(at: datetime) -> datetime:
    if not 2000 <= at.year < 2200:
        raise ValueError("it is a moment from 2000 to 2199")
    return at


def _to_the_microsecond(at: datetime) -> str:
    """An event repeats the moment of its check, and must find it again."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


_NO_NUL = Field(json_schema_extra={**NO_NUL_PATTERN})
Count = Annotated[int, Strict(), Field(ge=0, le=MOST_TOKENS)]
Model = Annotated[str, Strict(), Field(min_length=1, max_length=LONGEST_MODEL), _NO_NUL, NO_NUL]
Short = Annotated[str, Strict(), Field(min_length=1, max_length=LONGEST_WORD), _NO_NUL, NO_NUL]
Named = Annotated[str, Strict(), Field(min_length=1, max_length=LONGEST_NAME), _NO_NUL, NO_NUL]
TagValue = Annotated[str, Strict(), Field(max_length=LONGEST_NAME), _NO_NUL, NO_NUL]
AnyText = Annotated[str, Strict(), Field(max_length=4_096), _NO_NUL, NO_NUL]
When = Annotated[AwareDatetime, AfterValidator(_of_our_time)]
Moment = Annotated[
    datetime, PlainSerializer(_to_the_microsecond), WithJsonSchema({"type": "string", "format": "date-time"})
]
OperationId = Annotated[str, StringConstraints(pattern=CANONICAL_V7, strict=True)]
Money = Annotated[str, Field(pattern=r"^-?\d+(\.\d+)?$", description="US dollars.")]


class Sent(Schema):
    """What is sent has the names that are here, and no others."""

    model_config = ConfigDict(extra="forbid")


class CheckIn(Sent):
    """One call that a program wants to make, as far as it can tell before.

    Its estimate is the dearest of its model's and its fallbacks'. Output that nobody estimates counts as 4,096 tokens.
    """

    model: Model
    provider: Short
    estimated_input_tokens: Count
    estimated_output_tokens: Count | None = None
    modality: Modality = MODALITY
    fallback_models: list[Model] = Field(default_factory=list, max_length=MOST_FALLBACKS)
    agent_run_id: Named | None = None
    tags: dict[Short, TagValue] = Field(default_factory=dict, max_length=MOST_TAGS)
    uncounted_calls: Count = Field(0, description="Calls that the program made and could not ask for.")
    uncounted_tokens: Count = 0

    def as_check(self) -> Check:
        """The same as a value of the rules."""
        return Check(
            model=self.model,
            provider=self.provider,
            estimated_input_tokens=self.estimated_input_tokens,
            estimated_output_tokens=self.estimated_output_tokens,
            modality=self.modality,
            fallback_models=tuple(self.fallback_models),
            agent_run_id=self.agent_run_id,
            tags=dict(self.tags),
            uncounted_calls=self.uncounted_calls,
            uncounted_tokens=self.uncounted_tokens,
        )


class BatchIn(Sent):
    """Checks under one id. The same id with the same checks, in their order, only tells what became of them."""

    operation_id: OperationId
    checks: list[CheckIn] = Field(min_length=1, max_length=MOST_CHECKS)


class DecisionOut(Schema):
    """What was decided, by the figures it was decided with.

    `current_usage` is what was counted before; `remaining_budget` what is left after. They and `budget_limit` are of
    the limit that decided: the one that denied, else the one with the least left. Allowed without a `reservation_id`:
    nothing could be reserved, so nothing is confirmed.
    """

    allowed: bool
    remaining_budget: Money | None
    reservation_id: str | None
    mode: LimitMode
    budget_limit: Money | None
    current_usage: Money
    denied_by_period: Period | None
    project_id: str


class ItemOut(Schema):
    """What is known of one check."""

    index: int
    state: ItemState
    result: DecisionOut | None
    error_code: ItemError | None
    checked_at: Moment | None
    reservation_expires_at: Moment | None


class BatchOut(Schema):
    """An operation as the journal has it: completed items, then at most one that failed, then those never attempted."""

    operation_id: str
    status: OperationState
    expires_at: Moment
    items: list[ItemOut]


class ConfirmIn(Sent):
    """What a call has used, which settles what was reserved for it. Sent again within an hour it must be the same."""

    reservation_id: OperationId
    model: Model
    provider: Short
    modality: Modality = MODALITY
    input_tokens: Count
    output_tokens: Count
    cached_input_tokens: Count = Field(0, description="Of the input's: those that were read from a cache.")
    call_id: Named | None = None

    def as_used(self) -> Used:
        """The same as a value of the rules."""
        return Used(
            call_id=self.call_id or "",
            model=self.model,
            provider=self.provider,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_input_tokens=self.cached_input_tokens,
            modality=self.modality,
        )


class EventIn(Sent):
    """One call as a program tells of it afterwards. A denial is told with status `budget_denied` (its call id is the
    UUIDv5 of the operation and `denial:<index>`, its instance the operation, its attempt 0, its time `checked_at`).
    """

    call_id: Named
    instance_id: Named
    attempt_index: Annotated[int, Strict(), Field(ge=0, le=1_000_000)]
    timestamp: When
    status: EventStatus
    model: Model
    provider: Short
    modality: Short = MODALITY
    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_input_tokens: Count = 0
    agent_run_id: Named | None = None
    tags: dict[AnyText, AnyText] = Field(default_factory=dict, description="Judged one by one.")

    def as_told(self) -> Told:
        """The same as a value of the rules."""
        return Told(**{name: getattr(self, name) for name in type(self).model_fields})


class IngestIn(Sent):
    """Events, which are taken or not one by one."""

    events: list[EventIn] = Field(min_length=1, max_length=MOST_EVENTS)


class RejectedOut(Schema):
    """An event that was not taken, and why."""

    index: int
    call_id: str
    attempt_index: int
    code: Rejection


class DuplicateOut(Schema):
    """An event that may be there already.

    One by `call_id` is the one that is there when `same`; else another is there under its name, and this one is
    nowhere. One by `legacy_key` (its moment and instance) says nothing of this call, and `same` is null.
    """

    index: int
    call_id: str
    attempt_index: int
    matched_by: DuplicateBy
    same: bool | None


class IngestOut(Schema):
    """How many were sent, and what became of them: the three come to `submitted`."""

    submitted: int
    ingested: int
    rejected: int
    duplicates: int
    rejections: list[RejectedOut]
    duplicate_events: list[DuplicateOut]


class UsageIn(Schema):
    """Which events a list holds, the newest first: by when they came, not by the time they tell."""

    cursor: str = cursor_of(ids.SPEND_EVENT)
    limit: Limit = 50
    run_id: str = cursor_of(ids.PROGRAM_RUN)
    status: EventStatus | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None


class UsageLine(Schema):
    """One event. `cost` is null where its model has no known price."""

    event_id: str
    call_id: str
    instance_id: str
    attempt_index: int
    timestamp: Moment
    received_at: Moment
    status: EventStatus
    model: str
    provider: str
    modality: str
    input_tokens: int
    output_tokens: int
    cost: Money | None
    tags: dict[str, str]
    run_id: str | None
    agent_run_id: str | None


class UsageOut(Schema):
    """A page of events; `next` is the cursor of the rest, else null."""

    usage: list[UsageLine]
    next: str | None


class RunsIn(Schema):
    """Which runs a list holds, the newest first."""

    cursor: str = cursor_of(ids.PROGRAM_RUN)
    limit: Limit = 50
    name: Annotated[str, Field(max_length=256), _NO_NUL, NO_NUL] = Field("", description="The one of this very name.")


class RunLine(Schema):
    """A run: `run_id` is the journal's own name for it, `agent_run_id` (also `name`) the program's."""

    run_id: str
    agent_run_id: str
    name: str
    first_at: Moment
    last_at: Moment
    calls: int
    denied: int
    input_tokens: int
    output_tokens: int
    cost: Money


class RunsOut(Schema):
    """A page of runs; `next` is the cursor of the rest, else null."""

    runs: list[RunLine]
    next: str | None


class KeyOut(Schema):
    """Whose key this is, and what it may."""

    project_id: str
    scope: KeyScope


class PairIn(Sent):
    """Which project a command that is logged in wants to work with: its name, or its `project_id`."""

    project: Named
    scope: KeyScope = KeyScope.FULL


class RenewIn(Sent):
    """The secret that renews a pair."""

    refresh_token: Named


class PairOut(Schema):
    """A pair: what is shown for `expires_in` seconds, and what renews it. Keep the second before the first."""

    project_id: str
    scope: KeyScope
    access_token: str
    refresh_token: str
    expires_in: int


class Trouble(Schema):
    """Why it is not answered, as a word; of which operation, where it is of one; and in words, where there are some."""

    code: str
    operation_id: str | None = None
    message: str | None = None


class TroubleOut(Schema):
    """Every answer from 400 on. `errors` says where in what was sent a mistake is."""

    detail: Trouble
    errors: list[Mistake] | None = None


def answers(one: Any, *also: int, status: int = 200) -> dict[int, Any]:
    """What an address answers: `one`, and troubles with the statuses that every address has, and `also`."""
    return {status: one, **dict.fromkeys(sorted({401, 403, 405, 406, 422, 429, 500, 503, *also}), TroubleOut)}
