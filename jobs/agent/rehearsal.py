"""The model that needs no key and no network: an agent file's own list of turns, filled with what this job has."""

from catalog.rules.agents import fill_turn
from catalog.rules.grants import model_name
from catalog.rules.templates import Values
from jobs.rules.turns import TurnAnswer, TurnFailed, TurnOrder, TurnOutcome, Wanted


def ask(order: TurnOrder, *, home: str) -> TurnOutcome:
    """The rehearsal's answer to this turn. `home` is the studio's state folder, for `{{ home }}`."""
    turns = order.agent.rehearsal
    if order.number > len(turns) and order.notes:  # told of a late call after its last turn: there is nothing to add
        return TurnAnswer(say=order.past[-1].say, wanted=(), model="rehearsal")
    if order.number > len(turns):
        return TurnFailed(
            f"the rehearsal has {len(turns)} turns and was asked for turn {order.number}", agents_fault=True
        )
    texts = [call.text for turn in order.past for call in turn.calls]
    last = "\n".join(call.text for call in order.past[-1].calls) if order.past else ""
    values = Values(home=home, input=dict(order.given), defaults=order.agent.input, results=texts, last=last)
    turn = fill_turn(turns[order.number - 1], values)
    wanted = tuple(
        Wanted(model_name(call.tool, call.function), dict(call.arguments), f"r{order.number}.{place}")
        for place, call in enumerate(turn.calls, start=1)
    )
    return TurnAnswer(say=turn.say, wanted=wanted, continues=turn.continues, model="rehearsal")
