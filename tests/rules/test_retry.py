"""What follows an attempt's outcome, over every kind of function, every end and every sequence of them."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.rules import effect as effects
from jobs.rules.limits import MAX_ATTEMPTS, MAX_BUSY_WAIT
from jobs.rules.orders import End, Outcome
from jobs.rules.reasons import Reason
from jobs.rules.retry import AskPerson, Facts, Finish, RetryAt, Step, next_step
from jobs.rules.states import CALL_FINAL, CALL_MOVES, CallState, Effect
from jobs.rules.why import Why
from tests.rules.outcomes import REASONS, ended, outcomes

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
UNANSWERED = (End.TIMED_OUT, End.BROKEN, End.UNREADABLE, End.LOST, End.STOPPED)


@dataclass(frozen=True)
class Function:
    """The three kinds of functions that RULES U1 tells apart, and one that only says that it is idempotent."""

    read_only: bool
    retry_safe: bool
    honours_key: bool


READ = Function(read_only=True, retry_safe=True, honours_key=False)
KEYED = Function(read_only=False, retry_safe=True, honours_key=True)
PLAIN = Function(read_only=False, retry_safe=False, honours_key=False)
KEYED_BUT_NOT_IDEMPOTENT = Function(read_only=False, retry_safe=False, honours_key=True)
FUNCTIONS = (READ, KEYED, PLAIN, KEYED_BUT_NOT_IDEMPOTENT)

functions = st.sampled_from(FUNCTIONS)
jitters = st.floats(0, 1, exclude_max=True)


def facts(function: Function, *, state: CallState = CallState.RUNNING, attempts: int = 1, **more: object) -> Facts:
    """What is known of a call of this function."""
    given_facts = Facts(state, function.read_only, function.retry_safe, function.honours_key, attempts, Effect.NONE)
    return replace(given_facts, **more)  # type: ignore[arg-type]


def step(known: Facts, outcome: Outcome, jitter: float = 0.5) -> Step:
    """What follows, at one fixed time."""
    return next_step(known, outcome, now=NOW, jitter=jitter)


def goes_to(what: Step) -> CallState:
    """The state a step moves the call to."""
    match what:
        case RetryAt():
            return CallState.RETRYING
        case AskPerson():
            return CallState.UNKNOWN
        case Finish(state, _, _):
            return state


@dataclass
class Walk:
    """A call followed from attempt to attempt, as settling does."""

    function: Function
    attempts: int = 0
    effect: Effect = Effect.NONE
    effects_seen: list[Effect] = field(default_factory=list)
    last: Step | None = None

    def attempt(self, outcome: Outcome, jitter: float = 0.5) -> Step:
        """One more attempt ends so."""
        self.attempts += 1
        self.last = step(facts(self.function, attempts=self.attempts, effect=self.effect), outcome, jitter)
        self.effect = self.last.effect
        self.effects_seen.append(self.effect)
        return self.last


def walk(function: Function, ends: list[Outcome]) -> Walk:
    """Attempts with these outcomes, until no other follows by itself."""
    walked = Walk(function)
    for outcome in ends:
        if not isinstance(walked.attempt(outcome), RetryAt):
            break
    return walked


# --- U1–U4, B3: who gets another attempt ----------------------------------------------------------------------------


@pytest.mark.rule("U3")
@pytest.mark.rule("B3")
@given(outcomes(), jitters, st.sampled_from([PLAIN, KEYED_BUT_NOT_IDEMPOTENT]))
def test_what_is_not_retry_safe_gets_one_attempt_however_it_ends(
    outcome: Outcome, jitter: float, function: Function
) -> None:
    """CASES R13."""
    assert not isinstance(step(facts(function), outcome, jitter), RetryAt)


@pytest.mark.rule("U2")
@given(st.sampled_from([READ, KEYED]), st.lists(outcomes(), min_size=MAX_ATTEMPTS, max_size=MAX_ATTEMPTS + 3))
def test_there_are_never_more_than_four_attempts_busy_and_failed_from_one_allowance(
    function: Function, ends: list[Outcome]
) -> None:
    walked = walk(function, ends)
    assert walked.attempts <= MAX_ATTEMPTS
    assert not isinstance(walked.last, RetryAt)


@pytest.mark.rule("U2")
@pytest.mark.rule("B2")
@given(
    st.sampled_from([READ, KEYED]),
    st.lists(st.sampled_from([ended(End.BUSY), *map(ended, UNANSWERED)]), min_size=3, max_size=3),
)
def test_a_retry_safe_call_has_all_four_attempts_in_whatever_order_it_was_busy_or_failed(
    function: Function, ends: list[Outcome]
) -> None:
    walked = Walk(function)
    assert all(isinstance(walked.attempt(outcome), RetryAt) for outcome in ends)
    assert goes_to(walked.attempt(ended(End.ANSWERED))) is CallState.SUCCEEDED


@pytest.mark.rule("U2")
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("reason", REASONS[End.ANSWERED])
def test_an_answer_is_an_answer_also_an_error_and_is_never_asked_for_twice(function: Function, reason: Reason) -> None:
    error = ended(End.ANSWERED, is_error=reason is not Reason.ANSWERED, reason=reason)
    expected = CallState.SUCCEEDED if reason is Reason.ANSWERED else CallState.ERRORED
    assert goes_to(step(facts(function), error)) is expected


@pytest.mark.rule("U2")
@pytest.mark.parametrize("end", UNANSWERED)
def test_when_the_attempts_are_used_up_a_read_is_failed_and_a_keyed_write_that_may_have_acted_is_unknown(
    end: End,
) -> None:
    assert goes_to(walk(READ, [ended(end)] * 4).last) is CallState.FAILED  # type: ignore[arg-type]
    assert goes_to(walk(KEYED, [ended(end)] * 4).last) is CallState.UNKNOWN  # type: ignore[arg-type]


@pytest.mark.rule("U3")
@pytest.mark.parametrize("reason", REASONS[End.NOT_MADE])
def test_a_plain_write_that_was_not_made_is_a_known_failure(reason: Reason) -> None:
    assert step(facts(PLAIN), ended(End.NOT_MADE, reason=reason)) == Finish(CallState.FAILED, Effect.NONE, reason)


@pytest.mark.rule("U3")
@pytest.mark.parametrize("end", [End.TIMED_OUT, End.BROKEN, End.UNREADABLE, End.STOPPED])
def test_a_plain_write_of_which_nothing_had_gone_out_is_a_known_failure(end: End) -> None:
    assert goes_to(step(facts(PLAIN), ended(end, went_out=False))) is CallState.FAILED


@pytest.mark.rule("U4")
@pytest.mark.parametrize("end", UNANSWERED)
def test_a_plain_write_that_went_out_and_got_no_answer_is_unknown(end: End) -> None:
    assert step(facts(PLAIN), ended(end)) == AskPerson(Effect.MAYBE)


@pytest.mark.rule("U4")
def test_of_a_lost_node_nobody_knows_what_had_gone_out() -> None:
    assert step(facts(PLAIN), ended(End.LOST, went_out=False)) == AskPerson(Effect.MAYBE)


@pytest.mark.rule("U2")
@pytest.mark.parametrize("reason", [Reason.LISTING_CHANGED, Reason.FUNCTION_GONE, Reason.ARGUMENTS_UNSENDABLE])
def test_what_would_fail_again_just_so_is_not_tried_again(reason: Reason) -> None:
    assert goes_to(step(facts(READ), ended(End.NOT_MADE, reason=reason))) is CallState.FAILED


@pytest.mark.rule("U6")
@given(functions, outcomes(), st.integers(2, 5))
def test_run_it_again_is_one_further_attempt_and_no_more(function: Function, outcome: Outcome, attempts: int) -> None:
    again = facts(function, attempts=attempts, effect=Effect.MAYBE, run_again=True)
    assert not isinstance(step(again, outcome), RetryAt)


# --- B2, B3: how long a busy call waits -----------------------------------------------------------------------------


@pytest.mark.rule("B2")
@pytest.mark.rule("B3")
@given(st.floats(0, 100_000), jitters, st.integers(1, MAX_ATTEMPTS - 1))
@example(60.0, 0.0, 1)
@example(60.00001, 0.0, 1)
def test_a_busy_service_is_waited_for_up_to_sixty_seconds_exactly(wait: float, jitter: float, attempts: int) -> None:
    after = step(facts(READ, attempts=attempts), ended(End.BUSY, wait=wait), jitter)
    if wait <= MAX_BUSY_WAIT:
        assert isinstance(after, RetryAt)
        assert timedelta(seconds=wait) <= after.at - NOW <= timedelta(seconds=wait + 1)
    else:
        assert after == Finish(CallState.ERRORED, Effect.NONE, Reason.BUSY)


@pytest.mark.rule("B2")
@given(jitters, st.integers(1, MAX_ATTEMPTS - 1))
def test_without_a_wait_it_backs_off_exponentially_from_a_second_with_jitter(jitter: float, attempts: int) -> None:
    after = step(facts(READ, attempts=attempts), ended(End.BUSY), jitter)
    assert isinstance(after, RetryAt)
    seconds = (after.at - NOW).total_seconds()
    base = 2 ** (attempts - 1)
    assert base / 2 <= seconds <= base * 1.5


@pytest.mark.rule("B3")
@given(functions, st.floats(0, 60))
def test_the_last_busy_attempt_ends_errored_with_the_tools_own_text(function: Function, wait: float) -> None:
    last = step(facts(function, attempts=MAX_ATTEMPTS), ended(End.BUSY, wait=wait))
    assert last == Finish(CallState.ERRORED, Effect.NONE, Reason.BUSY)


# --- U10: what a call may have done is the sum of its attempts -------------------------------------------------------


@pytest.mark.rule("U10")
@given(st.sampled_from([KEYED, PLAIN, KEYED_BUT_NOT_IDEMPOTENT]), st.lists(outcomes(), min_size=1, max_size=5))
def test_maybe_is_taken_back_by_nothing_but_an_answer_under_an_honoured_key(
    function: Function, ends: list[Outcome]
) -> None:
    effect = Effect.NONE
    for outcome in ends:
        after = effects.after(effect, outcome, read_only=False, honours_key=function.honours_key)
        if effect is Effect.MAYBE and not (function.honours_key and outcome.end is End.ANSWERED):
            assert after is Effect.MAYBE
        effect = after


@pytest.mark.rule("U10")
@given(st.lists(outcomes(), min_size=1, max_size=MAX_ATTEMPTS))
def test_a_keyed_write_that_may_have_acted_never_ends_as_if_nothing_was_made(ends: list[Outcome]) -> None:
    walked = walk(KEYED, ends)
    if Effect.MAYBE in walked.effects_seen:
        assert isinstance(walked.last, RetryAt | AskPerson) or walked.effect is not Effect.NONE


@pytest.mark.rule("U10")
@pytest.mark.parametrize("later", [ended(End.BUSY, wait=999), ended(End.NOT_MADE, reason=Reason.LISTING_CHANGED)])
def test_a_busy_or_not_made_attempt_after_one_that_may_have_acted_is_still_a_question(later: Outcome) -> None:
    assert walk(KEYED, [ended(End.BROKEN), later]).last == AskPerson(Effect.MAYBE)


@given(st.lists(outcomes(), max_size=5))
def test_a_read_only_call_never_may_have_acted(ends: list[Outcome]) -> None:
    effect = Effect.NONE
    for outcome in ends:
        effect = effects.after(effect, outcome, read_only=True, honours_key=False)
        assert effect is not Effect.MAYBE


# --- L2, L7, U8: calls that are being stopped ------------------------------------------------------------------------


@pytest.mark.rule("L2")
@given(functions, outcomes(), st.sampled_from([Why.CANCELLED, Why.STOPPED_BY_PERSON, Why.JOB_LIMIT]))
def test_a_reply_that_wins_against_a_cancel_is_kept_and_all_else_ends_canceled(
    function: Function, outcome: Outcome, why: Why
) -> None:
    after = step(facts(function, state=CallState.CANCELLING, stop_reason=why), outcome)
    assert isinstance(after, Finish)
    if outcome.end is End.ANSWERED:
        assert after.state in (CallState.SUCCEEDED, CallState.ERRORED)
    else:
        assert (after.state, after.reason) == (CallState.CANCELED, why)


@pytest.mark.rule("L7")
@pytest.mark.rule("U8")
@given(functions, outcomes(), st.integers(1, MAX_ATTEMPTS))
def test_under_a_kill_switch_a_call_ends_canceled_however_its_attempt_ends_and_never_asks(
    function: Function, outcome: Outcome, attempts: int
) -> None:
    stopping = facts(function, state=CallState.CANCELLING, stop_reason=Why.KILL_SWITCH, attempts=attempts)
    after = step(stopping, outcome)
    assert isinstance(after, Finish)
    assert (after.state, after.reason) == (CallState.CANCELED, Why.KILL_SWITCH)
    if outcome.end is End.ANSWERED or (not function.read_only and outcome.end in UNANSWERED and outcome.wire.went_out):
        assert after.effect is not Effect.NONE


@pytest.mark.rule("U8")
@given(functions, outcomes((End.ANSWERED, End.NOT_MADE, End.BUSY)))
def test_what_was_answered_or_refused_before_it_acted_never_asks(function: Function, outcome: Outcome) -> None:
    assert not isinstance(step(facts(function), outcome), AskPerson)


# --- the tables ------------------------------------------------------------------------------------------------------


@given(outcomes(), jitters, st.integers(1, 5), st.sampled_from(Effect), st.booleans())
def test_every_end_of_every_call_is_a_move_that_the_tables_have(
    outcome: Outcome, jitter: float, attempts: int, effect: Effect, run_again: bool
) -> None:
    for function, state in product(FUNCTIONS, (CallState.RUNNING, CallState.CANCELLING)):
        known = facts(function, state=state, attempts=attempts, effect=effect, run_again=run_again)
        after = step(
            replace(known, stop_reason=Why.CANCELLED if state is CallState.CANCELLING else ""), outcome, jitter
        )
        assert goes_to(after) in CALL_MOVES[state]
        if isinstance(after, Finish):
            assert after.state in CALL_FINAL
            assert after.reason
