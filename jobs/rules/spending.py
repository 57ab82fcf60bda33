"""What a request to a model may cost, and what the spend journal is told of it afterwards (RULES S10)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from budgets.rules.checks import Check, Used
from budgets.rules.words import AUTHORITY
from catalog.rules.estimates import as_sent
from catalog.rules.model_names import OPENAI, OPENAI_CHAT, ModelName
from jobs.rules import texts
from jobs.rules.turns import TurnAnswer, TurnBusy, TurnDenied, TurnFailed, TurnOrder, TurnOutcome

MOST_TOKENS: Final = 10**12  # that a request can have used, as the journal counts
BEFORE_ITS_END: Final = timedelta(seconds=10)  # of a reservation's authority, after which no request is begun with it
FOR_A_MESSAGE: Final = 8  # tokens that a provider puts around each
MORE_BY: Final = 1.1  # other models count up to a tenth more (catalog.rules.estimates)


@dataclass(frozen=True, slots=True)
class Settled:
    """How a reservation is confirmed: by the tokens that its request has used, none when nothing is charged for it."""

    reservation: UUID
    used: Used

    def as_json(self) -> dict[str, Any]:
        """As a turn keeps it until the journal has it."""
        return {"reservation": str(self.reservation), **self.used.as_json()}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "Settled":
        """What was kept."""
        used = {name: value for name, value in kept.items() if name != "reservation"}
        return cls(UUID(kept["reservation"]), Used(**used))


def texts_of(order: TurnOrder) -> Iterator[str]:
    """All that a request carries, in pieces, of which a tokenizer counts the tokens."""
    yield order.agent.instructions
    yield repr(dict(order.given))
    yield from order.begun_with
    yield from order.notes
    yield from map(as_sent, order.tools)
    if order.sums_up:
        yield texts.SUM_UP
    for turn in order.past:
        yield turn.say
        yield from turn.notes
        for call in turn.calls:
            yield call.model_name + repr(call.arguments)
            yield call.text


def check_of(order: TurnOrder, named: ModelName, *, job: str, counted: int, pieces: int) -> Check:
    """What a request may cost at most: all that it carries, and an answer as long as its agent allows one.

    `counted` are the tokens of its `texts_of`, of which there are `pieces`. What its provider counted of the
    conversation before may be more, since some keep more of an answer than its words.
    """
    about = int(counted * MORE_BY) + FOR_A_MESSAGE * pieces
    return Check(
        model=named.name,
        provider=provider_of(named),
        estimated_input_tokens=max(about, order.length),
        estimated_output_tokens=order.agent.max_tokens,
        agent_run_id=job,
    )


def provider_of(named: ModelName) -> str:
    """What the list of prices calls a provider."""
    return OPENAI.name if named.provider == OPENAI_CHAT else named.provider.name


def begin_within() -> float:
    """For how many seconds from before its check a request may be begun (RULES S4)."""
    return (AUTHORITY - BEFORE_ITS_END).total_seconds()


def settled(outcome: TurnOutcome, order: TurnOrder, named: ModelName, reservation: UUID) -> Settled | None:
    """How the journal is told of a request's end; None when nobody knows what it cost, so that it stays in doubt."""
    match outcome:
        case TurnAnswer(usage=usage) | TurnFailed(usage=usage) if not _is_credible(usage):
            return None
        case TurnAnswer(usage=usage) | TurnFailed(usage=usage) if usage.get("input_tokens"):
            return Settled(reservation, _used(order, named, usage))
        case TurnFailed(charged=False) | TurnBusy(went_out=False):
            return Settled(reservation, _used(order, named, {}))
        case TurnAnswer() | TurnFailed() | TurnBusy() | TurnDenied():
            return None


def _is_credible(usage: Mapping[str, int]) -> bool:
    """Whether a provider can have counted so."""
    return all(isinstance(count, int) and 0 <= count <= MOST_TOKENS for count in usage.values())


def _used(order: TurnOrder, named: ModelName, usage: Mapping[str, int]) -> Used:
    return Used(
        call_id=f"{order.turn_id}:{order.asked}",
        model=named.name,
        provider=provider_of(named),
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        cached_input_tokens=usage.get("cache_read_tokens", 0),
    )
