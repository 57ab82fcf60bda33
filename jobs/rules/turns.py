"""What crosses between the durable core and the agent loop: a `TurnOrder` goes in, a `TurnOutcome` comes out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from catalog.rules.agents import AgentSpec


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

    `notes` are what it had been told before it said so, of calls that ended late (RULES A8).
    """

    say: str
    calls: tuple[PastCall, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnOrder:
    """One question to the model, complete. `asked` tells a repeated question from the one whose node was lost.

    `notes` tell it of calls that a person asked for again and that have ended since its last turn (RULES A8).
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


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """What the model answered. No calls means that the agent has finished, and `say` is the job's output.

    With `continues` the job does not end but continues as new, with its input changed by that (RULES G3).
    """

    say: str
    wanted: tuple[Wanted, ...] = ()
    continues: Mapping[str, Any] | None = None
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The model could not be asked; `error` says why in words for the agent's owner."""

    error: str
    agents_fault: bool = False


type TurnOutcome = TurnAnswer | TurnFailed
