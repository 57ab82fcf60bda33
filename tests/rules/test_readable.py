"""What a row of the queue says of a call's arguments (RULES A3)."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from approvals.rules.readable import brief, in_order, required_of

ROOM = 130


def told(arguments: Any, room: int = ROOM, names: tuple[str, ...] = ()) -> dict[str, str]:
    return dict(brief(json.dumps(arguments), room, names))


def test_short_values_stay_whole_and_a_long_text_says_how_many_characters_more_it_has() -> None:
    body = "Hello Lea,\n\nthank you for writing. " + "more " * 60
    row = told({"to": "l.meier@bergbau.example", "body": body, "subject": "Your order 7422", "attachments": []})
    assert row["to"] == "l.meier@bergbau.example" and row["subject"] == "Your order 7422" and row["attachments"] == "[]"
    assert row["body"].startswith("Hello Lea,") and row["body"].endswith(" characters")
    begins, more = row["body"].removesuffix(" characters").split("… +")
    assert body.startswith(begins) and len(begins) + int(more) == len(body)


def test_paths_keep_their_last_part_and_lists_of_files_their_names() -> None:
    far = "/srv/" + "deep/" * 40
    row = told({"file": far + "customers-full.csv", "attachments": [far + "customers-full.csv", far + "7422.pdf"]}, 80)
    assert row["file"].endswith("…/customers-full.csv")
    assert "/customers-full.csv" in row["attachments"]
    assert told({"attachments": ["exports/customers-full.csv"], "body": "words " * 90})["attachments"] == (
        '["exports/customers-full.csv"]'
    )
    assert told({"attachments": [f"receipts/{n}.pdf" for n in range(90)]}, 60)["attachments"].endswith("more]")
    assert told({"iban": "L" * 100 + "2901"}, 40)["iban"].endswith("2901")


def test_arguments_stand_in_the_order_of_the_schema() -> None:
    names = required_of(["vendor", "amount", 3])
    assert list(told({"iban": "x", "amount": 1, "vendor": "y"}, ROOM, names)) == ["vendor", "amount", "iban"]
    assert in_order("text", names) == "text"
    assert required_of(None) == ()


def test_what_is_cut_off_is_told_as_far_as_it_goes() -> None:
    whole = json.dumps({"to": "a@b.example", "n": [1, 2], "body": 'one "two" three \\ ' * 90, "last": "x"})
    for end in range(60, 900):
        row = dict(brief(whole[:end], ROOM))
        assert row["to"] == "a@b.example" and row["n"] == "[1, 2]" and row["body"].endswith("…")
    assert brief('{"', 10) == (("", '{"'),)
    assert brief("", 10) == ()


@given(
    st.dictionaries(
        st.text(max_size=5), st.text(max_size=300) | st.lists(st.text(max_size=40)) | st.integers(), max_size=6
    )
)
def test_a_row_names_every_argument_and_is_never_long(arguments: dict[str, Any]) -> None:
    row = told(arguments)
    assert set(row) == set(arguments)
    assert all(len(one) <= ROOM + 2 * len(f"… +{300:,} characters") for one in row.values())


@given(st.text(max_size=40))
def test_any_beginning_is_told(text: str) -> None:
    assert "".join(value for _, value in brief(text, 500)).count("\n") <= text.count("\n") + text.count("\\n")
