"""What a card and a row say of arguments beside those of earlier calls (RULES A3, A13)."""

from typing import Any

import pytest

from approvals.rules.compared import Past, Remark, hidden_words
from approvals.rules.readable import Line, brief, lines


def past_of(*calls: dict[str, Any]) -> Past:
    past = Past()
    for arguments in calls:
        past.add(lines(arguments))
    return past


def said(past: Past, name: str, value: Any) -> str:
    (line,) = lines({name: value})
    remark = past.remark(line)
    return " | ".join([remark.says, *remark.values, *(["new"] if remark.new else [])]) if remark else ""


REFUNDS = past_of(*({"amount": 10 + n, "to": "ACME Ltd", "note": f"order {n}", "big": n > 90} for n in range(100)))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("amount", 900_000, "never before above 109 | new"),
        ("amount", 110, "10 to 109 before"),  # numbers that count up are each above all before
        ("amount", -1, "never before below 10 | new"),
        ("fee_to", "somebody", "never given before | new"),
        ("to", "ACME Ltd", "always so before"),
        ("to", "ACME\u202e dtL", "new value | ACME Ltd | new"),
        ("note", "another order", ""),  # each had another one
        ("big", True, "so before, too"),
        ("amount", "12", "never given before as text | new"),
    ],
)
def test_a_value_is_told_with_what_was_there_before(name: str, value: Any, says: str) -> None:
    assert said(REFUNDS, name, value) == says


def test_too_few_earlier_calls_say_nothing_and_what_was_always_given_is_missed() -> None:
    assert past_of({"amount": 1}, {"amount": 2}).remark(Line("fee", "1", False)) is None
    three = past_of(*({"items": [{"id": n}], "memo": "x"} for n in range(3)))
    assert three.missing(lines({"items": [{"id": 1}, {"id": 2}]})) == ("memo",)
    assert three.remark(Line("items[1].id", "90", False)) == Remark("never before above 2", new=True)


def test_a_short_line_keeps_every_name_and_cuts_long_values_in_the_middle() -> None:
    pairs = brief('{"to": "ACME", "memo": "' + "m" * 300 + 'END", "amount": 5, "tags": ["a", "b"]}', 80)
    assert [name for name, _ in pairs] == ["to", "memo", "amount", "tags"]
    memo = dict(pairs)["memo"]
    assert dict(pairs)["to"] == "ACME" and memo.startswith("mmm") and "…" in memo and memo.endswith("END")
    assert sum(len(name) + len(value) + 2 for name, value in pairs) <= 80
    assert brief('{"memo": "never end', 10)[0][0] == ""


def test_a_hidden_character_says_in_words_what_it_does() -> None:
    assert hidden_words("ACME\u202e dtL\u202e") == (
        "U+202E, right-to-left override: on other screens it is not seen and turns around the text after it",
    )
    assert hidden_words("plain") == ()
