"""What crosses between the durable core and the agent loop: a `TurnOrder` goes in, a `TurnOutcome` comes out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from catalog.rules.agents import AgentSpec
from catalog.rules.estimates import Definition
from catalog.rules.servers import Remote

LOST: Final = "lost_requests"
LOST_TOKENS: Final = "lost_input_tokens"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One call as the model asked for it: its own name and id for it, and the arguments it wrote.

    `arguments` is a value, or JSON text still to be parsed.
    """

    model_name: str
    arguments: Any
    model_call_id: str = ""


@dataclass(frozen=True, slots=True)
class PastCall:
    """One earlier call as the model reads it."""

    model_name: str
    model_call_id: str
    arguments: Any
    text: str


@dataclass(frozen=True, slots=True)
class PastTurn:
    """One earlier turn: what the model said, and what its calls came to, in the order it asked for them.

    `notes` are what it had been told before it said so, of calls that ended late (RULES A8). `response` is its answer
    as the model library keeps it, None for a rehearsal's.
    """

    say: str
    calls: tuple[PastCall, ...]
    notes: tuple[str, ...] = ()
    response: Any = None


@dataclass(frozen=True, slots=True)
class TurnOrder:
    """One question to the model, complete. `asked` tells a repeated question from the one whose node was lost.

    `notes` tell it of calls that a person asked for again and that have ended since its last turn (RULES A8). `tools`
    are the definitions that the request carries, `remote` the way to the model's provider; a rehearsal has neither.

    `begun_with` is what a run reads of those before it, after the job's input; with `sums_up` the question is for a
    summary of this one (RULES G3). `length` is about how many tokens its conversation has, as far as that was counted.
    After `begin_by`, on this machine's own clock, it is not sent any more: then nothing is reserved for it (RULES S4).
    """

    tenant: UUID
    job_id: UUID
    turn_id: UUID
    number: int
    asked: int
    agent: AgentSpec
    given: Mapping[str, Any] = field(repr=False)
    past: tuple[PastTurn, ...] = field(repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    tools: tuple[Definition, ...] = field(default=(), repr=False)
    remote: Remote | None = field(default=None, repr=False)
    begun_with: tuple[str, ...] = field(default=(), repr=False)
    sums_up: bool = False
    length: int = 0
    begin_by: float | None = None


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """What the model answered. No calls means that the agent has finished, and `say` is the job's output.

    With `continues` the job does not end but continues as new, with its input changed by that (RULES G3). `usage` has
    the request's tokens by kind, and `micro_usd`, millionths of a dollar, where the price is known.
    """

    say: str
    wanted: tuple[Wanted, ...] = ()
    continues: Mapping[str, Any] | None = None
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    response: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TurnBusy:
    """The provider did not answer now: the same turn is asked again, after `wait` seconds if it named any.

    `went_out`: the provider may have worked on the request, and may charge for it.
    """

    error: str
    wait: float | None
    went_out: bool = False


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The model could not be asked, or its answer is of no use; `error` says why in words for the agent's owner.

    Not `charged` is what was never sent, or was refused before it was worked on.
    """

    error: str
    agents_fault: bool = False
    usage: Mapping[str, int] = field(default_factory=dict)
    charged: bool = True


@dataclass(frozen=True, slots=True)
class TurnDenied:
    """The spend journal did not let the request be made, so no model was asked; `error` names the limit (RULES S10)."""

    error: str


type TurnOutcome = TurnAnswer | TurnBusy | TurnFailed | TurnDenied


def tokens_of(usage: Mapping[str, Any]) -> int:
    """The tokens a turn has used: of its request and answer, and of requests that were sent in vain before.

    The cache's figures are parts of the input's.
    """
    counted = ("input_tokens", "output_tokens", LOST_TOKENS)
    return sum(count for name in counted if isinstance(count := usage.get(name), int))


def with_lost(usage: Mapping[str, int], lost: int) -> dict[str, int]:
    """A turn's usage after `lost` requests that may have been worked on and brought no answer.

    Each is taken to have cost what the answered one's request did: a provider counts what it was sent.
    """
    if not lost:
        return dict(usage)
    found = {**usage, LOST: lost, LOST_TOKENS: lost * usage.get("input_tokens", 0)}
    total = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    if "micro_usd" in usage and total:
        found["micro_usd"] += usage["micro_usd"] * found[LOST_TOKENS] // total
    return found
