"""A job as a trace: spans of the job, its turns, its calls and their attempts, and how OTLP writes them as JSON.

Names and attributes are those of OpenTelemetry's conventions for generative AI and for MCP; what they have no word for
begins with `oz0.`. No span holds an argument, a result, or what a model said.

The trace's id is the job's own UUID, and a span's the last half of its row's: a trace that is sent twice is the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

SCOPE: Final = "oz0.jobs"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

type Attribute = str | int | bool


class Kind(IntEnum):
    """A span's kind, as OTLP numbers it."""

    INTERNAL = 1
    CLIENT = 3


@dataclass(frozen=True, slots=True)
class Span:
    """One span. `parent` is None for a trace's first; `error` says why it failed, or is empty."""

    trace: UUID
    id: UUID
    parent: UUID | None
    name: str
    kind: Kind
    began: datetime
    ended: datetime
    attributes: Mapping[str, Attribute]
    error: str = ""


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """One try of a call. `status` is HTTP's, where there was one; `remote` that it went over the network."""

    id: UUID
    number: int
    began: datetime
    ended: datetime
    end: str
    reason: str
    went_out: bool
    status: int | None
    remote: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class CallFacts:
    """One call."""

    id: UUID
    tool: str
    function: str
    model_call_id: str
    kind: str
    state: str
    effect: str
    reason: str
    rule: str
    began: datetime
    ended: datetime
    failed: bool
    attempts: Sequence[AttemptFacts] = ()


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """One question to a model. `usage` is what was counted of it."""

    id: UUID
    number: int
    model: str
    began: datetime
    ended: datetime
    state: str
    usage: Mapping[str, Any]
    failed: bool


@dataclass(frozen=True, slots=True)
class JobFacts:
    """One job that is over."""

    id: UUID
    agent: str
    title: str
    starter: str
    state: str
    failure_kind: str
    shown: str
    began: datetime
    ended: datetime
    turns: Sequence[TurnFacts] = field(default=())
    calls: Sequence[CallFacts] = field(default=())

    @property
    def weight(self) -> int:
        """How many spans it comes to."""
        return 1 + len(self.turns) + sum(1 + len(call.attempts) for call in self.calls)


def spans(job: JobFacts) -> list[Span]:
    """The whole trace of a job, its own span first."""
    found = [_job(job)]
    found += [_turn(job, turn) for turn in job.turns]
    for call in job.calls:
        found.append(_call(job, call))
        found += [_attempt(job, call, attempt) for attempt in call.attempts]
    return found


def _job(job: JobFacts) -> Span:
    told: dict[str, Attribute] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": job.agent,
        "gen_ai.conversation.id": job.shown,
        "oz0.job.id": job.shown,
        "oz0.job.title": job.title,
        "oz0.job.starter": job.starter,
        "oz0.job.state": job.state,
    }
    failed = job.state == "FAILED"
    if failed:
        told["error.type"] = job.failure_kind or "failed"
    error = job.failure_kind if failed else ""
    return Span(job.id, job.id, None, f"invoke_agent {job.agent}", Kind.INTERNAL, job.began, job.ended, told, error)


def _turn(job: JobFacts, turn: TurnFacts) -> Span:
    provider, _, model = turn.model.rpartition(":")
    told: dict[str, Attribute] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider or model or "unknown",
        "gen_ai.request.model": model or "unknown",
        "gen_ai.agent.name": job.agent,
        "gen_ai.conversation.id": job.shown,
        "oz0.turn.number": turn.number,
        "oz0.turn.state": turn.state,
    }
    for name in ("input_tokens", "output_tokens"):
        if isinstance(count := turn.usage.get(name), int):
            told[f"gen_ai.usage.{name}"] = count
    if turn.failed:
        told["error.type"] = turn.state
    error = turn.state if turn.failed else ""
    name = f"chat {model}".strip()
    return Span(job.id, turn.id, job.id, name, Kind.CLIENT, turn.began, turn.ended, told, error)


def _call(job: JobFacts, call: CallFacts) -> Span:
    name = f"{call.tool}.{call.function}"
    told: dict[str, Attribute] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": job.agent,
        "oz0.call.kind": call.kind,
        "oz0.call.state": call.state,
        "oz0.call.effect": call.effect,
        "oz0.call.reason": call.reason,
    }
    if call.model_call_id:
        told["gen_ai.tool.call.id"] = call.model_call_id
    if call.rule:
        told["oz0.policy.rule"] = call.rule
    if call.failed:
        told["error.type"] = "tool_error" if call.state == "ERRORED" else call.reason
    error = call.reason if call.failed else ""
    return Span(job.id, call.id, job.id, f"execute_tool {name}", Kind.INTERNAL, call.began, call.ended, told, error)


def _attempt(job: JobFacts, call: CallFacts, attempt: AttemptFacts) -> Span:
    told: dict[str, Attribute] = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.function,
        "network.transport": "tcp" if attempt.remote else "pipe",
        "oz0.attempt.number": attempt.number,
        "oz0.attempt.end": attempt.end,
        "oz0.attempt.went_out": attempt.went_out,
    }
    if attempt.status is not None:
        told["http.response.status_code"] = attempt.status
    if attempt.failed:
        told["error.type"] = "tool_error" if attempt.reason == "tool_error" else attempt.reason
    error = attempt.reason if attempt.failed else ""
    name = f"tools/call {call.function}"
    return Span(job.id, attempt.id, call.id, name, Kind.CLIENT, attempt.began, attempt.ended, told, error)


def as_otlp(found: Iterable[Span], *, resource: Mapping[str, Attribute], version: str) -> dict[str, Any]:
    """The body of one request to `/v1/traces`, in OTLP's JSON: ids in hexadecimal, 64-bit numbers as text."""
    scope = {"name": SCOPE, "version": version}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": scope, "spans": [_written(span) for span in found]}],
            }
        ]
    }


def span_id(row: UUID) -> str:
    """The id of a row's span: what of a UUIDv7 was drawn for it."""
    return row.hex[16:]


def _written(span: Span) -> dict[str, Any]:
    told: dict[str, Any] = {
        "traceId": span.trace.hex,
        "spanId": span_id(span.id),
        "name": span.name,
        "kind": span.kind.value,
        "startTimeUnixNano": _nanoseconds(span.began),
        "endTimeUnixNano": _nanoseconds(max(span.began, span.ended)),
        "attributes": _attributes(span.attributes),
        "status": {"code": 2, "message": span.error} if span.error else {},
    }
    return told | ({"parentSpanId": span_id(span.parent)} if span.parent else {})


def _attributes(told: Mapping[str, Attribute]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in told.items()]


def _value(value: Attribute) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case _:
            return {"stringValue": value}


def _nanoseconds(moment: datetime) -> str:
    return str((moment - _EPOCH) // timedelta(microseconds=1) * 1000)
