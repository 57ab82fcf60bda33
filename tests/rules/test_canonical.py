"""One spelling for each value, and a named place for each value without one (MACHINES 6)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.canonical import NotCanonical, canonical, check, digest, digest_of_any, parse

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) < 2**53 or abs(x) >= 1e21),
    st.sampled_from(["", "a", "é", "\U0001f680", "\u2028", "</script>", "\x00"]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("abé\U0001f680\ufb33"), inner)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_the_spelling_says_the_value_and_has_one_form(value: object) -> None:
    spelled = canonical(value)
    assert canonical(json.loads(spelled)) == spelled
    assert parse(spelled) == json.loads(spelled)
    assert digest_of_any(value) == digest(value)


def test_keys_are_in_the_order_of_utf_16() -> None:
    assert canonical({"\ufb33": 1, "\U0001f600": 2, "a": 3}) == '{"a":3,"\U0001f600":2,"\ufb33":1}'.encode()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"n": 2**53}, "$.n"),
        ({"n": 1e20}, "$.n"),
        ({"a": [0, {"b c": float("nan")}]}, '$.a[1]["b c"]'),
        ([float("-inf")], "$[0]"),
        ({"t": "\ud800"}, "$.t"),
        ({"\udc00": 1}, "$"),
        ({1: 2}, "$"),
        ({"o": object()}, "$.o"),
    ],
)
def test_what_has_no_spelling_is_refused_by_its_path(value: object, path: str) -> None:
    with pytest.raises(NotCanonical) as refused:
        check(value)
    assert refused.value.path == path
    with pytest.raises(NotCanonical):
        digest(value)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": {"b": 1, "b": 1}}', "$.a.b"),
        ('{"a": [NaN]}', "$.a[0]"),
        ('{"a": -Infinity}', "$.a"),
        ('{"a": 1e999}', "$.a"),
        ('{"a": 9007199254740993}', "$.a"),
        ('{"a": "\\ud800"}', "$.a"),
        ("{", "$"),
        ("", "$"),
        (b"\xff", "$"),
        ("[" * 100_000, "$"),
        ("9" * 5000, "$"),
    ],
)
def test_a_text_is_refused_by_the_path_of_what_is_wrong(text: str | bytes, path: str) -> None:
    with pytest.raises(NotCanonical) as refused:
        parse(text)
    assert refused.value.path == path


def test_nesting_deeper_than_64_levels_is_refused_and_64_are_not() -> None:
    def nested(levels: int) -> str:
        return "[" * levels + "]" * levels

    parse(nested(64))
    with pytest.raises(NotCanonical, match="deeper than 64 levels"):
        parse(nested(66))


def test_values_without_a_spelling_still_have_digests_of_their_own() -> None:
    odd = [{"maximum": 2**53}, {"maximum": 2**53 + 1}, {"maximum": float("inf")}, {"t": "\ud800"}, {"t": "\udc00"}]
    digests = {digest_of_any(value) for value in odd}
    assert len(digests) == len(odd)
    assert digest_of_any({"b": 2**60, "a": 1}) == digest_of_any({"a": 1, "b": 2**60})
