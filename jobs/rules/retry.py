"""What follows an attempt's outcome, as a value: retry, ask a person, or finish (RULES B2, B3, U1–U6, U10, L2, L7)."""

from dataclasses import dataclass
from datetime import datetime

from jobs.rules import effect as effects
from jobs.rules.limits import MAX_ATTEMPTS, MAX_BUSY_WAIT, after_wait, backoff
from jobs.rules.orders import End, Outcome
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState, Effect
from jobs.rules.why import Why


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a call when an attempt of it has ended. `attempts` counts the one that ended.

    `run_again` says that a person had it made once more: that further attempt is followed by none by itself (RULES U6).
    `old_key` says that it was first made longer ago than a service surely knows its key: made again by itself it could
    write twice, so a write that may have acted is a person's to run again (RULES U7).
    """

    state: CallState
    read_only: bool
    retry_safe: bool
    honours_key: bool
    attempts: int
    effect: Effect
    stop_reason: str = ""
    run_again: bool = False
    old_key: bool = False


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Make another attempt at this time."""

    at: datetime
    effect: Effect


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Nobody knows whether it wrote: the call is *unknown*."""

    effect: Effect


@dataclass(frozen=True, slots=True)
class Finish:
    """The call is over."""

    state: CallState
    effect: Effect
    reason: str


type Step = RetryAt | AskPerson | Finish

_POINTLESS = frozenset({Reason.LISTING_CHANGED, Reason.FUNCTION_GONE, Reason.ARGUMENTS_UNSENDABLE})


def next_step(facts: Facts, outcome: Outcome, *, now: datetime, jitter: float) -> Step:
    """Decide what follows `outcome`. `jitter` is a die in [0, 1) thrown at the edge."""
    effect = effects.after(facts.effect, outcome, read_only=facts.read_only, honours_key=facts.honours_key)
    if facts.state is CallState.CANCELLING and facts.stop_reason == Why.KILL_SWITCH:
        return Finish(CallState.CANCELED, effect, Why.KILL_SWITCH)  # however its attempt ends (RULES L7)
    if outcome.end is End.ANSWERED:
        failed = outcome.result is not None and outcome.result.is_error
        return Finish(CallState.ERRORED if failed else CallState.SUCCEEDED, effect, outcome.reason)
    if facts.state is CallState.CANCELLING:
        return Finish(CallState.CANCELED, effect, facts.stop_reason or Why.CANCELLED)
    if outcome.end is End.BUSY:
        return _busy(facts, outcome, effect, now=now, jitter=jitter)
    if _has_another(facts, effect) and outcome.reason not in _POINTLESS:
        return RetryAt(backoff(now, failures=facts.attempts, jitter=jitter), effect)
    if effect is Effect.MAYBE:
        return AskPerson(effect)
    return Finish(CallState.FAILED, effect, outcome.reason)


def _has_another(facts: Facts, effect: Effect) -> bool:
    """Whether the call may be made once more by itself: busy and failed attempts are of one allowance (RULES U2)."""
    may_write_twice = facts.old_key and effect is Effect.MAYBE
    return facts.retry_safe and not facts.run_again and not may_write_twice and facts.attempts < MAX_ATTEMPTS


def _busy(facts: Facts, outcome: Outcome, effect: Effect, *, now: datetime, jitter: float) -> Step:
    wait = outcome.retry_after
    if _has_another(facts, effect) and (wait is None or wait <= MAX_BUSY_WAIT):
        if wait is None:
            return RetryAt(backoff(now, failures=facts.attempts, jitter=jitter), effect)
        return RetryAt(after_wait(now, wait=wait, jitter=jitter), effect)
    if effect is Effect.MAYBE:
        return AskPerson(effect)
    return Finish(CallState.ERRORED, effect, outcome.reason)
