"""What a call may have done in the world: the sum of its attempts (RULES U10)."""

from jobs.rules.orders import End, Outcome
from jobs.rules.states import Effect


def may_have_gone_out(outcome: Outcome) -> bool:
    """Whether a byte of the request may have reached the server. A lost node's record is lost with it."""
    return outcome.wire.went_out or outcome.end is End.LOST


def after(before: Effect, outcome: Outcome, *, read_only: bool, honours_key: bool) -> Effect:
    """The effect once `outcome` has come.

    *maybe* stays, whatever comes later, but for one thing: an answer from a function that honours the key also
    answers for the attempts before it.
    """
    if outcome.end is End.ANSWERED:
        return Effect.MADE if before is not Effect.MAYBE or honours_key else Effect.MAYBE
    unanswered = outcome.end not in (End.BUSY, End.NOT_MADE)
    if unanswered and not read_only and may_have_gone_out(outcome):
        return Effect.MAYBE
    return before
