"""What a model reads of a call without an answer of its own."""

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.rules.reasons import Reason
from jobs.rules.states import CALL_FINAL, CallState, Effect
from jobs.rules.texts import MAY_HAVE_ACTED, NOTHING_MADE, edited, for_model, late_note
from jobs.rules.why import Why

DECIDED = ("a person denied", "a person stopped", "a person checked")


def text(
    state: CallState,
    reason: str = "",
    effect: Effect = Effect.NONE,
    *,
    detail: str = "",
    note: str = "",
    answer: str = "",
    read_only: bool = False,
) -> str:
    """The text of such a call."""
    return for_model(
        state=state, reason=reason, effect=effect, answer=answer, detail=detail, note=note, read_only=read_only
    )


SIX = {
    "unknown": text(CallState.UNKNOWN, Reason.TIME_LIMIT, Effect.MAYBE),
    "stopped": text(CallState.CANCELED, Why.STOPPED_BY_PERSON),
    "expired": text(CallState.REFUSED, Why.EXPIRED),
    "cancelled": text(CallState.CANCELED, Why.CANCELLED),
    "refused by policy": text(CallState.REFUSED, Why.POLICY_REFUSES, detail="rule “no refunds”"),
    "denied": text(CallState.REFUSED, Why.DENIED, note="too dear"),
}


@pytest.mark.rule("U9")
def test_the_six_texts_are_distinct_and_none_holds_another() -> None:
    """CASES U06."""
    for one, other in combinations(SIX.values(), 2):
        assert one not in other
        assert other not in one


@pytest.mark.rule("U9")
@pytest.mark.parametrize("name", SIX)
def test_only_what_a_person_decided_says_so(name: str) -> None:
    """CASES U06."""
    said = SIX[name].lower()
    assert any(words in said for words in DECIDED) is (name in ("stopped", "denied"))
    assert ("person" in said) is (name in ("stopped", "denied", "unknown"))


@pytest.mark.rule("U9")
@given(st.sampled_from(sorted(CALL_FINAL)), st.sampled_from([*Why, *Reason]), st.sampled_from(Effect), st.booleans())
def test_no_text_says_that_a_person_decided_when_none_did(
    state: CallState, reason: str, effect: Effect, read_only: bool
) -> None:
    said = text(state, reason, effect, detail="d", answer="the tool's words", read_only=read_only).lower()
    decided = (
        state is CallState.HAPPENED
        or (state, reason) == (CallState.CANCELED, Why.STOPPED_BY_PERSON)
        or (state, reason) == (CallState.REFUSED, Why.DENIED)
    )
    assert any(words in said for words in DECIDED) is decided


@pytest.mark.rule("U10")
@given(
    st.sampled_from(sorted(CALL_FINAL)), st.sampled_from([*Why, *Reason]), st.sampled_from([Effect.MADE, Effect.MAYBE])
)
def test_what_may_have_acted_is_never_told_as_nothing_done(state: CallState, reason: str, effect: Effect) -> None:
    assert NOTHING_MADE.strip() not in text(state, reason, effect, detail="d", answer="the tool's words")


@pytest.mark.rule("L2")
@pytest.mark.parametrize("reason", [Why.CANCELLED, Why.STOPPED_BY_PERSON, Why.KILL_SWITCH, Why.JOB_LIMIT])
@pytest.mark.parametrize("effect", [Effect.MADE, Effect.MAYBE])
def test_a_stopped_write_that_may_have_gone_out_is_told_as_one_that_may_have_acted(reason: Why, effect: Effect) -> None:
    assert MAY_HAVE_ACTED in text(CallState.CANCELED, reason, effect)
    assert MAY_HAVE_ACTED not in text(CallState.CANCELED, reason, Effect.NONE)
    assert MAY_HAVE_ACTED not in text(CallState.CANCELED, reason, effect, read_only=True)


@pytest.mark.rule("L7")
def test_a_kill_switch_is_told_before_and_after_a_call_started() -> None:
    assert "kill switch" in text(CallState.CANCELED, Why.KILL_SWITCH)
    assert "kill switch" in text(CallState.REFUSED, Why.KILL_SWITCH)


@pytest.mark.rule("A9")
def test_a_denial_carries_the_reason_a_person_gave() -> None:
    assert "too dear" in SIX["denied"]


@pytest.mark.rule("U6")
def test_a_write_that_happened_is_told_with_the_result_a_person_gave_or_that_none_is_known() -> None:
    told = text(CallState.HAPPENED, Why.HAPPENED, Effect.MADE, note="refund 41")
    assert "a person checked" in told
    assert "refund 41" in told
    assert "No result is known" in text(CallState.HAPPENED, Why.HAPPENED, Effect.MADE)


@pytest.mark.rule("B3")
def test_an_answer_is_read_as_the_tool_wrote_it_also_an_error_and_a_busy_one() -> None:
    for state, reason in (
        (CallState.SUCCEEDED, Reason.ANSWERED),
        (CallState.ERRORED, Reason.TOOL_ERROR),
        (CallState.ERRORED, Reason.BUSY),
    ):
        assert text(state, reason, Effect.MADE, answer="no such book") == "no such book"


@pytest.mark.rule("B6")
def test_a_further_attempt_that_the_policy_refuses_is_told_as_the_policys() -> None:
    assert "policy" in text(CallState.FAILED, Why.POLICY_REFUSES, detail="rule “stop”")


@pytest.mark.rule("A9")
@pytest.mark.rule("U9")
def test_an_edit_and_a_late_call_are_told_before_the_text_of_the_call_which_stays_as_it_is() -> None:
    denied = SIX["denied"]
    told = edited({"amount": 5}, denied)
    assert told.startswith("A person edited the arguments of this call while it waited") and told.endswith(denied)
    assert '{"amount": 5}' in told
    assert len(edited({"text": "x" * 10_000}, "ok")) < 5_000
    note = late_note("shop__refund", denied)
    assert "asked again for your call of shop__refund" in note and note.endswith(denied)


@pytest.mark.rule("U9")
def test_the_six_texts_word_for_word() -> None:
    """A change of what a model reads is made here too, on purpose."""
    assert SIX == {
        "unknown": "Nobody knows whether this call happened. A person is being asked. Do not repeat it.",
        "stopped": "A person stopped the job. Nothing was done.",
        "expired": "This call had to be approved, and nobody answered in time. Nobody decided against it."
        " Nothing was done.",
        "cancelled": "This call ended because its job was cancelled. Nothing was done.",
        "refused by policy": "The tool policy refuses this call (rule “no refunds”); nobody was asked."
        " Nothing was done.",
        "denied": "A person denied this call. Their reason: too dear. Nothing was done.",
    }


@pytest.mark.rule("U9")
def test_the_words_for_a_model_stand_in_one_file_alone() -> None:
    root = Path(__file__).parents[2]
    begins = [" ".join(said.split()[:5]) for said in SIX.values()]
    found = {
        path.relative_to(root).as_posix()
        for app in ("studio", "approvals", "jobs", "catalog", "tenants", "base")
        for path in (root / app).rglob("*.py")
        if any(words in path.read_text() for words in begins)
    }
    assert found == {"jobs/rules/texts.py"}
