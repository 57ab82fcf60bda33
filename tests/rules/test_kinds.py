"""A function's kind, reach and whether it may be made again follow from its own listing entry."""

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.rules.kinds import Kind, kind_of, traits_of, undeclared

odd = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.floats(), st.lists(st.booleans(), max_size=2))
hint = st.one_of(st.booleans(), odd)
NAMES = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
annotations = st.dictionaries(st.sampled_from(NAMES), hint)


@pytest.mark.rule("A1")
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"readOnlyHint": True}, Kind.READ),
        ({"readOnlyHint": True, "destructiveHint": True}, Kind.READ),
        ({"destructiveHint": False}, Kind.WRITE),
        ({"readOnlyHint": False, "destructiveHint": False}, Kind.WRITE),
        ({"destructiveHint": True}, Kind.DESTRUCTIVE),
        ({}, Kind.UNDECLARED),
        ({"readOnlyHint": False}, Kind.UNDECLARED),
        ({"idempotentHint": True, "openWorldHint": False}, Kind.UNDECLARED),
        ({"readOnlyHint": "true"}, Kind.UNDECLARED),
        ({"readOnlyHint": 1, "destructiveHint": 0}, Kind.UNDECLARED),
        ({"readOnlyHint": "true", "destructiveHint": False}, Kind.WRITE),
        ({"read_only_hint": True}, Kind.UNDECLARED),
    ],
)
def test_the_kind_is_what_the_annotations_declare(said: dict[str, Any], kind: Kind):
    assert kind_of(said) is kind
    assert traits_of(said, {}).kind is kind


@pytest.mark.rule("A1")
@given(annotations)
def test_a_hint_of_a_wrong_type_counts_as_left_out(said: dict[str, Any]):
    readable = {name: value for name, value in said.items() if isinstance(value, bool)}
    assert traits_of(said, {}) == traits_of(readable, {})


@pytest.mark.rule("A1")
@pytest.mark.parametrize("value", [None, "false", 0, True])
def test_a_function_reaches_the_open_world_unless_it_says_it_does_not(value: Any):
    assert traits_of({"openWorldHint": value}, {}).open_world
    assert traits_of({}, {}).open_world
    assert not traits_of({"openWorldHint": False}, {}).open_world


@pytest.mark.rule("A1")
@pytest.mark.rule("U1")
@given(annotations, st.dictionaries(st.sampled_from(["oz0/idempotency_key", "oz0/resume"]), hint))
def test_the_word_of_an_entry_nobody_approved_counts_for_nothing(said: dict[str, Any], meta: dict[str, Any]):
    traits = traits_of(said, meta, trusted=False)
    assert traits.kind is Kind.UNDECLARED
    assert traits.open_world
    assert not traits.read_only
    assert not traits.retry_safe


@pytest.mark.rule("K5")
@pytest.mark.parametrize(
    ("meta", "honours"),
    [
        ({"oz0/idempotency_key": True}, True),
        ({"oz0/idempotency_key": "true"}, False),
        ({"oz0/idempotency_key": 1}, False),
        ({"idempotency_key": True}, False),
        ({}, False),
    ],
)
def test_a_function_honours_the_key_only_when_its_own_meta_says_so(meta: dict[str, Any], honours: bool):
    assert traits_of({"idempotentHint": True}, meta).honours_key is honours


@pytest.mark.rule("U1")
@given(annotations, st.dictionaries(st.just("oz0/idempotency_key"), hint))
def test_a_call_may_be_made_again_when_it_only_reads_or_is_idempotent_and_honours_the_key(
    said: dict[str, Any], meta: dict[str, Any]
):
    """CASES R13."""
    reads = said.get("readOnlyHint") is True
    repeatable = said.get("idempotentHint") is True and meta.get("oz0/idempotency_key") is True
    assert traits_of(said, meta).retry_safe is (reads or repeatable)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "it has no annotations, so nobody knows whether it changes anything"),
        ({"openWorldHint": False}, "it does not say it only reads, and leaves out destructiveHint"),
        ({"readOnlyHint": "yes"}, "readOnlyHint is not true or false, so it counts as left out"),
    ],
)
def test_an_undeclared_function_is_told_why(said: dict[str, Any], reason: str):
    """CASES C14."""
    found = undeclared(said)
    assert found is not None
    assert found.reason == reason


def test_the_fix_to_paste_declares_the_function_and_keeps_what_it_said():
    found = undeclared({"idempotentHint": True, "openWorldHint": False})
    assert found is not None
    lines = found.fix.splitlines()
    hints = [line for line in lines if "#" in line and "=" in line]
    declared = []
    for kept in hints:
        pasted = "\n".join(line for line in lines if line == kept or line not in hints)
        declared.append(ast.unparse(ast.parse(f"{pasted}\ndef f(): ...").body[0]).splitlines()[0])
    rest = "idempotent_hint=True, open_world_hint=False))"
    assert declared == [
        f"@server.tool(annotations=ToolAnnotations(read_only_hint=True, {rest}",
        f"@server.tool(annotations=ToolAnnotations(destructive_hint=False, {rest}",
        f"@server.tool(annotations=ToolAnnotations(destructive_hint=True, {rest}",
    ]
    assert max(map(len, lines)) <= 48, "it is shown in a column of the catalog, and is not to be broken inside a word"
    with pytest.raises(SyntaxError):
        compile(f"{found.fix}\ndef f(): ...", "pasted", "exec")  # nobody pastes it without a choice


@given(annotations)
def test_every_undeclared_function_and_no_other_gets_a_fix(said: dict[str, Any]):
    assert (undeclared(said) is not None) is (kind_of(said) is Kind.UNDECLARED)
    assert undeclared(said, trusted=False) is not None
