"""The tools: what each takes, and the call it makes of it. All of it is checked before credentials or HTTP."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from budgets.rules.attribution import call_id_of, why_not_event
from budgets.rules.words import MOST_CHECKS, MOST_TAGS, Modality
from budgets.sessions.batches import DenialsAgain, Lookup, Submission, why_not_again
from budgets.sessions.bounds import Bounds
from budgets.sessions.calls import Call
from budgets.sessions.reading import Exact, Listing, Pages, Search, refuse_long
from budgets.sessions.settling import Confirmation, EventAgain
from budgets.sessions.shapes import (
    Asked,
    Check,
    Checks,
    Count,
    Model,
    Name,
    OperationId,
    Tags,
    Used,
    Word,
    told,
)

RUN: Final = "OZ0_BUDGET_RUN"
TAGS: Final = "OZ0_BUDGET_TAGS"

type Event = dict[str, JsonValue]


class BadArguments(ValueError):
    """Arguments that no call can be made of; the message says which and how to mend them."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What a call takes from the world: fresh ids, the time, and its bounds."""

    new_id: Callable[[], UUID]
    now: Callable[[], datetime]
    bounds: Bounds


class DenialEvent(Asked):
    """One `recording_retry` object of an earlier result, unchanged."""

    index: Annotated[int, Field(ge=0, lt=MOST_CHECKS)]
    event: Event


class CheckBatch(Asked):
    """Exactly one of `checks`, `recover_only` and `record_only`."""

    operation_id: Annotated[
        OperationId | None, Field(description="A fresh UUIDv7 that you have kept before you call; made when left out.")
    ] = None
    checks: Annotated[Checks | None, Field(description="To submit, once.")] = None
    no_record: Annotated[bool, Field(description="Submit without recording denials.")] = False
    recover_only: Annotated[bool, Field(description="Only look up what became of operation_id.")] = False
    record_only: Annotated[
        Annotated[list[DenialEvent], Field(min_length=1, max_length=MOST_CHECKS)] | None,
        Field(description="Only send these recording_retry objects, unchanged."),
    ] = None

    def call(self, edge: Edge) -> Call:
        """Raises `BadArguments`."""
        if (self.checks is not None) + self.recover_only + (self.record_only is not None) != 1:
            raise BadArguments("give exactly one of checks, recover_only and record_only")
        if self.checks is not None:
            checks = [_with_ambient(one, f"checks.{index}.tags") for index, one in enumerate(self.checks)]
            return Submission(self.operation_id or str(edge.new_id()), checks, record=not self.no_record)
        if self.no_record:
            raise BadArguments("no_record goes with checks alone")
        if self.operation_id is None:
            raise BadArguments("operation_id is needed to recover or to record")
        if self.record_only is None:
            return Lookup(self.operation_id)
        events = [(one.index, one.event) for one in self.record_only]
        if why := why_not_again(self.operation_id, events):
            raise BadArguments(f"record_only: {why}")
        return DenialsAgain(self.operation_id, events)


class Confirm(Asked):
    """What was used, or only `record_only`."""

    reservation_id: Annotated[
        OperationId | None,
        Field(description="Of the check; null when that had none: nothing is confirmed then."),
    ] = None
    call_id: Annotated[
        Name | None,
        Field(description="Of the provider call; made of the reservation's when left out."),
    ] = None
    model: Model | None = None
    provider: Word | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    modality: Modality | None = None
    agent_run_id: Name | None = None
    tags: Tags | None = None
    no_record: Annotated[bool, Field(description="Confirm without recording the call.")] = False
    record_only: Annotated[Event | None, Field(description="Only send this recording_retry, unchanged.")] = None

    def call(self, edge: Edge) -> Call:
        """Raises `BadArguments`."""
        if self.record_only is not None:
            if self.model_fields_set != {"record_only"}:
                raise BadArguments("record_only stands alone")
            if why := why_not_event(self.record_only):
                raise BadArguments(f"record_only: {why}")
            return EventAgain(self.record_only)
        if self.model is None or self.provider is None or self.input_tokens is None or self.output_tokens is None:
            raise BadArguments("model, provider, input_tokens and output_tokens are needed to confirm")
        if "reservation_id" not in self.model_fields_set:
            raise BadArguments("reservation_id is needed: what the check answered, null included")
        run, tags = _with_ambience(self.agent_run_id, self.tags, "tags")
        used = Used(
            call_id=self.call_id or call_id_of(self.reservation_id or "") or str(edge.new_id()),
            model=self.model,
            provider=self.provider,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_input_tokens=self.cached_input_tokens,
            modality=self.modality,
            agent_run_id=run,
            tags=tags,
        )
        return Confirmation(
            self.reservation_id, used, record=not self.no_record, now=edge.now(), instance=edge.new_id()
        )


class UsageList(Asked):
    """Which events."""

    cursor: Annotated[str | None, Field(description="recovery.cursor of an answer before.")] = None
    run_id: Annotated[Name | None, Field(description="Of one run, by its exact run_id.")] = None
    run: Annotated[Name | None, Field(description="Of the one run of this name, which is looked for first.")] = None
    status: Literal["success", "error", "budget_denied"] | None = None

    def call(self, edge: Edge) -> Call:
        """Raises `BadArguments`, and `Stopped` for a cursor that is too long."""
        if self.run is not None and (self.run_id is not None or self.cursor is not None):
            raise BadArguments("run stands without run_id and cursor: read on by the run_id that was found")
        refuse_long(self.cursor, edge.bounds.cursor)
        given = {"run_id": self.run_id, "status": self.status}
        wanted = {name: value for name, value in given.items() if value is not None}
        return Listing(Pages("usage", edge.bounds.cursor, self.cursor, wanted), run=self.run)


class RunsList(Asked):
    """From where on."""

    cursor: Annotated[str | None, Field(description="recovery.cursor of an answer before.")] = None

    def call(self, edge: Edge) -> Call:
        """Raises `Stopped` for a cursor that is too long."""
        refuse_long(self.cursor, edge.bounds.cursor)
        return Listing(Pages("runs", edge.bounds.cursor, self.cursor))


class RunFind(Asked):
    """Exactly one of both."""

    name: Annotated[Name | None, Field(description="As your program named it: the list of runs is read.")] = None
    run_id: Annotated[Name | None, Field(description="As the journal names it: nothing is searched.")] = None
    cursor: Annotated[str | None, Field(description="recovery.cursor of a search that was cut short.")] = None

    def call(self, edge: Edge) -> Call:
        """Raises `BadArguments`."""
        refuse_long(self.cursor, edge.bounds.cursor)
        if self.name is not None and self.run_id is None:
            return Search(self.name, edge.bounds.cursor, self.cursor)
        if self.run_id is not None and self.name is None and self.cursor is None:
            return Exact(self.run_id, edge.bounds.cursor)
        raise BadArguments("give exactly one of name and run_id, and a cursor with name alone")


type Arguments = CheckBatch | Confirm | UsageList | RunsList | RunFind


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is offered."""

    name: str
    arguments: type[Arguments]
    writes: bool
    description: str

    def call(self, given: Mapping[str, Any], edge: Edge) -> Call:
        """The call that these arguments ask for. Raises `BadArguments`, `Stopped`."""
        try:
            return self.arguments.model_validate(dict(given)).call(edge)
        except ValidationError as error:
            raise BadArguments(told(error)) from error


TOOLS: Final = {
    one.name: one
    for one in (
        Tool(
            "budget_check_batch",
            CheckBatch,
            True,
            "Ask whether 1 to 32 model requests may be made, and reserve for them, under one operation_id that you "
            "keep. Submit once; afterwards only recover_only (look up) and record_only (tell of denials again). Call "
            "no provider for a denied or unresolved item, and ask for no unknown or unattempted one again by itself.",
        ),
        Tool(
            "budget_confirm",
            Confirm,
            True,
            "Confirm what a reserved request has used, and record it. With unknown settlement, send the same again "
            "with no_record. record_only sends the recording_retry of an earlier result and confirms nothing.",
        ),
        Tool("usage_list", UsageList, False, "List recorded calls, the newest first, up to 10 pages at a time."),
        Tool("runs_list", RunsList, False, "List runs and what they come to, up to 10 pages at a time."),
        Tool(
            "run_find", RunFind, False, "Find one run by name or run_id. A search that was cut short decides nothing."
        ),
    )
}
PROFILES: Final = {
    "full": frozenset(TOOLS),
    "read": frozenset(name for name, one in TOOLS.items() if not one.writes),
}


def _with_ambient(check: Check, where: str) -> Check:
    run, tags = _with_ambience(check.agent_run_id, check.tags, where)
    return check.model_copy(update={"agent_run_id": run, "tags": tags})


def _with_ambience(
    run: str | None, tags: Mapping[str, str] | None, where: str
) -> tuple[str | None, dict[str, str] | None]:
    """A run and tags, and those of the environment where none are given. Raises `BadArguments` for too many."""
    of_all, beside = _ambient()
    both = {**(beside or {}), **(tags or {})}
    if len(both) > MOST_TAGS:
        raise BadArguments(
            f"{where}: with those of {TAGS} in the server's environment they are {len(both)} tags, and at most "
            f"{MOST_TAGS} may be: give fewer, or have fewer there"
        )
    return run or of_all, both or None


def _ambient() -> tuple[str | None, dict[str, str] | None]:
    """The run and the tags that the environment gives to what is submitted or confirmed. Raises `BadArguments`."""
    run, raw = os.environ.get(RUN) or None, os.environ.get(TAGS) or None
    try:
        tags = None if raw is None else TypeAdapter(Tags).validate_json(raw, strict=True)
        return (None if run is None else TypeAdapter(Name).validate_python(run)), tags
    except ValidationError as error:
        raise BadArguments(f"{RUN} or {TAGS} of the server's environment cannot be read: {told(error)}") from error
