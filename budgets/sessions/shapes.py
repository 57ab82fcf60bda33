"""What the journal is asked and what it must answer, checked before it is believed (RULES S1, S3, S4)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from budgets.rules import identity
from budgets.rules.attribution import moment
from budgets.rules.words import (
    AUTHORITY,
    LIFETIME,
    LONGEST_MODEL,
    LONGEST_NAME,
    LONGEST_WORD,
    MOST_CHECKS,
    MOST_FALLBACKS,
    MOST_TAGS,
    MOST_TOKENS,
    ItemState,
    Modality,
)


class BadShape(ValueError):
    """Something is not as it must be; the message says where and what, and repeats nothing of it."""


class Asked(BaseModel):
    """What a caller gives: of exactly these names and types."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Said(BaseModel):
    """What the journal answers: more names than these may come."""

    model_config = ConfigDict(strict=True, extra="ignore")


def _canonical(text: str) -> str:
    if identity.parse(text) is None:
        raise ValueError("it is no UUIDv7 in its canonical spelling: small letters, with hyphens")
    return text


def _moment(text: str) -> str:
    if moment(text) is None:
        raise ValueError("it is no time with a zone")
    return text


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it has a NUL character, which no text of the journal has: leave it out")
    return text


NO_NUL: Final = AfterValidator(_without_nul)
OperationId = Annotated[str, AfterValidator(_canonical)]
Moment = Annotated[str, AfterValidator(_moment)]
Model = Annotated[str, Field(min_length=1, max_length=LONGEST_MODEL), NO_NUL]
Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD), NO_NUL]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), NO_NUL]
TagValue = Annotated[str, Field(max_length=LONGEST_NAME), NO_NUL]
Tags = Annotated[dict[Word, TagValue], Field(max_length=MOST_TAGS)]
Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Amount = int | float | Annotated[str, Field(max_length=LONGEST_WORD, pattern=r"^-?[0-9]+(\.[0-9]+)?$")]


class Check(Asked):
    """One check: may a request of about this size be made?"""

    model: Model
    provider: Word
    estimated_input_tokens: Count
    estimated_output_tokens: Count | None = None
    modality: Modality | None = None
    fallback_models: Annotated[list[Model], Field(max_length=MOST_FALLBACKS)] | None = None
    agent_run_id: Name | None = None
    tags: Tags | None = None
    uncounted_calls: Count | None = None
    uncounted_tokens: Count | None = None


class Used(Asked):
    """What a call has used in the end."""

    call_id: Name
    model: Model
    provider: Word
    input_tokens: Count
    output_tokens: Count
    cached_input_tokens: Count | None = None
    modality: Modality | None = None
    agent_run_id: Name | None = None
    tags: Tags | None = None

    def settles(self) -> Mapping[str, Any]:
        """What settles it: all that its cost depends on, the same in every replay."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"agent_run_id", "tags"})


Checks = Annotated[list[Check], Field(min_length=1, max_length=MOST_CHECKS)]


class Decision(Said):
    """What a check came to. A denial is one too, and so is an allowance without a reservation (fail-open)."""

    allowed: bool
    reservation_id: Annotated[str, Field(min_length=1, max_length=LONGEST_WORD)] | None
    remaining_budget: Amount | None
    mode: Literal["alert_only", "hard_deny"]
    budget_limit: Amount | None
    current_usage: Amount
    denied_by_period: str | None
    project_id: str

    @model_validator(mode="after")
    def _denied_without_authority(self) -> "Decision":
        if not self.allowed and self.reservation_id is not None:
            raise ValueError("a denial has a reservation")
        return self


class Item(Said):
    """One check of a batch as the journal keeps it."""

    index: int
    state: Annotated[ItemState, Field(strict=False)]  # its word will do
    result: Decision | None = None
    error_code: Literal["check_failed", "reservation_unknown"] | None = None
    checked_at: Moment | None = None
    reservation_expires_at: Moment | None = None

    @model_validator(mode="after")
    def _paired(self) -> "Item":
        completed = self.state is ItemState.COMPLETED
        if completed != (self.result is not None) or (completed and (self.error_code or not self.checked_at)):
            raise ValueError("a completed item has a result and a time and no error, and no other has a result")
        if self.state is ItemState.UNATTEMPTED and (self.error_code or self.checked_at or self.reservation_expires_at):
            raise ValueError("an unattempted item carries something")
        reserved = self.result is not None and self.result.reservation_id is not None
        if reserved != (self.reservation_expires_at is not None):
            raise ValueError("a reservation and its end come together")
        ends, began = moment(self.reservation_expires_at), moment(self.checked_at)
        if ends is not None and (began is None or ends - began != AUTHORITY):
            raise ValueError("a reservation's authority is not 300 s")
        return self


class Batch(Said):
    """An operation as the journal keeps it."""

    operation_id: OperationId
    status: Literal["running", "finished", "interrupted"]
    expires_at: Moment
    items: Annotated[list[Item], Field(min_length=1, max_length=MOST_CHECKS)]

    @model_validator(mode="after")
    def _ordered(self) -> "Batch":
        if [one.index for one in self.items] != list(range(len(self.items))):
            raise ValueError("the items are not in order, once each")
        ends = moment(self.expires_at)
        if ends is None or not _lasts(self.operation_id, ends):
            raise ValueError("it does not expire 24 h after its id was made")
        rest = [one.state for one in self.items]
        while rest and rest[0] is ItemState.COMPLETED:
            del rest[0]
        if rest and rest[0] in (ItemState.FAILED, ItemState.UNKNOWN):
            del rest[0]
        if any(state is not ItemState.UNATTEMPTED for state in rest):
            raise ValueError("after the first item that is not completed there is more than an unattempted rest")
        if self.status == "finished" and not self.completed:
            raise ValueError("it is finished and not completed")
        return self

    @property
    def completed(self) -> bool:
        """Whether every item is."""
        return all(one.state is ItemState.COMPLETED for one in self.items)


def _lasts(operation_id: str, ends: datetime) -> bool:
    """Whether an operation of this id ends then."""
    try:
        return ends - identity.time_of(UUID(operation_id)) == LIFETIME
    except OverflowError:  # of a year that no calendar has
        return False


def read[T: BaseModel](kind: type[T], value: Any) -> T:
    """A value as one of the shapes. Raises `BadShape`."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise BadShape(told(error)) from error


def told(error: ValidationError) -> str:
    """The first mistakes, each with its place; what was given is not repeated."""
    found = []
    for one in error.errors(include_input=False, include_url=False, include_context=False):
        place = ".".join(str(step)[:LONGEST_WORD] for step in one["loc"]) or "it"
        found.append(f"{place}: {one['msg'].removeprefix('Value error, ')}")
    return "; ".join(found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")


def plain(check: Check) -> Mapping[str, Any]:
    """A check as it is sent: what was not given is left out."""
    return check.model_dump(mode="json", exclude_none=True)
