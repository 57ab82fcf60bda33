"""What a card says of arguments beside those of earlier calls (RULES A3, A13)."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.rules.compared import PAIRED, Beside, Past, Remark, hidden_words
from approvals.rules.readable import Line, lines

type Arguments = dict[str, Any]


def past_of(*calls: Arguments) -> Past:
    past = Past()
    for arguments in calls:
        past.add(lines(arguments))
    return past


def remarks(past: Past, arguments: Arguments) -> dict[str, Remark | None]:
    values = lines(arguments)
    return {line.path: remark for line, remark in zip(values, past.remarks(values), strict=True)}


def marks(past: Past, arguments: Arguments) -> list[str]:
    return [path for path, remark in remarks(past, arguments).items() if remark and remark.new]


def said(past: Past, arguments: Arguments, name: str) -> str:
    remark = remarks(past, arguments)[name]
    if remark is None:
        return ""
    beside = f" with {remark.beside.path} {remark.beside.value}" if remark.beside else ""
    return " | ".join([remark.says + beside, *remark.values, *(["new"] if remark.new else [])])


REFUNDS = past_of(*({"amount": 10 + n, "to": "ACME Ltd", "note": f"order {n}", "big": n > 90} for n in range(100)))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("amount", 900_000, "never before above 109 | new"),
        ("amount", 110, "10 to 109 before"),  # numbers that count up are each above all before
        ("amount", -1, "never before below 10 | new"),
        ("fee_to", "somebody", "never given before | new"),
        ("to", "ACME Ltd", "in all 100 before"),
        ("to", "ACME\u202e dtL", "never before | ACME Ltd | new"),
        ("note", "another order", ""),  # each had another one
        ("note", "order 7", "in 1 of 100 before"),
        ("big", True, "in 9 of 100 before"),
        ("amount", "12", "never given before as text | new"),
    ],
)
def test_a_value_is_told_with_how_many_calls_had_it_before(name: str, value: Any, says: str) -> None:
    assert said(REFUNDS, {name: value}, name) == says


VENDORS = {"Acme": ("DE44", 80), "Northlight": ("DE21", 900), "Rapid": ("FR76", 30), "Bluebird": ("DE02", 350)}
NAMES = list(VENDORS)


def paid(vendor: str, amount: float, **more: Any) -> Arguments:
    return {"vendor": vendor, "invoice": f"INV-{amount}", "amount": amount, "iban": VENDORS[vendor][0], **more}


# twenty-six payments, one of them to the account of which a later one is to be told
PAYMENTS = [paid(name := NAMES[n % 4], VENDORS[name][1] + 2 * n) for n in range(25)]
PAID = past_of(*PAYMENTS, paid("Rapid", 18_940, iban="LT60"))


def test_a_value_that_was_there_once_is_new_beside_another_that_always_had_its_own() -> None:
    fraud = paid("Northlight", 18_940, iban="LT60")
    assert said(PAID, fraud, "iban") == "never before with vendor Northlight | DE21 | new"
    assert said(PAID, fraud, "amount") == "never before above 942 with vendor Northlight | new"
    assert marks(PAID, fraud) == ["amount", "iban"]
    assert said(PAID, fraud, "vendor") == "in 6 of 26 before"
    swapped = paid("Northlight", 1000, iban="DE44")
    assert marks(PAID, swapped) == ["amount", "iban"]  # and not the vendor with this iban as well
    assert said(PAID, swapped, "amount") == "never before above 128 with iban DE44 | new"
    assert marks(PAID, paid("Northlight", 1000)) == []
    assert said(PAID, paid("Northlight", 1000), "amount") == "902 to 942 before with vendor Northlight"


def test_eleven_payments_to_four_vendors_are_enough_to_tell_a_strange_account() -> None:
    few = past_of(*PAYMENTS[:11])
    fraud = paid("Northlight", 18_940, iban="LT60")
    assert said(few, fraud, "iban") == "never before with vendor Northlight | DE21 | new"


def test_a_value_that_is_new_among_hundreds_is_told_beside_the_one_it_goes_with() -> None:
    many = past_of(*({"vendor": f"v{n % 90}", "iban": f"i{n % 90}"} for n in range(300)))
    assert said(many, {"vendor": "v7", "iban": "LT60"}, "iban") == "never before with vendor v7 | i7 | new"
    assert marks(many, {"vendor": "v99", "iban": "i99"}) == []  # among so many, another one is nothing odd


def test_arguments_that_do_not_go_with_each_other_are_never_told_together() -> None:
    dice = Random(7)

    def ticket() -> Arguments:
        status, comment = dice.choice("abc"), dice.choice("vwxyz")
        return {"status": status, "comment": comment, "cost": dice.uniform(8, 95), "cur": "EUR", "id": dice.random()}

    for calls in range(3, 60):
        for _ in range(4):
            found = remarks(past_of(*(ticket() for _ in range(calls))), ticket())
            assert not any(one.new and one.beside for one in found.values() if one)
    rare = past_of(*({"reason": "ab"[n % 2], "cur": "USD" if n == 7 else "EUR"} for n in range(60)))
    assert marks(rare, {"reason": "a", "cur": "USD"}) == []  # it is rare, whatever the reason


SMALL = st.sampled_from(["a", "b", "c"])
CALL = st.fixed_dictionaries(
    {"x": SMALL, "y": SMALL, "n": st.integers(0, 40)},
    optional={"z": st.booleans(), "tags": st.lists(SMALL, max_size=2)},
)


@given(st.lists(CALL, min_size=1, max_size=30), st.data())
def test_a_call_that_was_made_before_is_never_marked(calls: list[Arguments], data: st.DataObject) -> None:
    assert marks(past_of(*calls), data.draw(st.sampled_from(calls))) == []


@given(st.lists(CALL, max_size=30), CALL)
def test_what_is_told_beside_another_value_was_never_with_it_and_that_was_in_three_calls(
    calls: list[Arguments], call: Arguments
) -> None:
    for path, remark in remarks(past_of(*calls), call).items():
        if remark is None or remark.beside is None:
            continue
        assert remark.beside in [Beside(line.path, line.text) for line in lines(call)]
        sharing = [one for one in calls if lines(one) and one[remark.beside.path] == call[remark.beside.path]]
        assert len(sharing) >= 3
        if remark.new and path != "n":
            assert len(calls) >= PAIRED and all(one.get(path) != call[path] for one in sharing)


@given(st.lists(CALL, max_size=2), CALL)
def test_fewer_than_three_calls_say_nothing(calls: list[Arguments], call: Arguments) -> None:
    assert set(remarks(past_of(*calls), call).values()) <= {None}


@given(st.lists(st.tuples(SMALL, st.floats(1, 100)), min_size=3, max_size=12), SMALL)
def test_a_number_within_twice_what_was_before_is_not_far_outside(calls: list[tuple[str, float]], x: str) -> None:
    past = past_of(*({"x": one, "n": number} for one, number in calls))
    high = max(number for _, number in calls)
    beside = [number for one, number in calls if one == x] or [high]
    assert "n" not in marks(past, {"x": x, "n": 2 * max(beside)})


def test_too_few_earlier_calls_say_nothing_and_what_was_always_given_is_missed() -> None:
    assert past_of({"amount": 1}, {"amount": 2}).remarks([Line("fee", "1", False)]) == (None,)
    three = past_of(*({"items": [{"id": n}], "memo": "x"} for n in range(3)))
    assert three.missing(lines({"items": [{"id": 1}, {"id": 2}]})) == ("memo",)
    assert three.remarks([Line("items[1].id", "90", False)]) == (Remark("never before above 2", new=True),)


def test_a_hidden_character_says_in_words_what_it_does() -> None:
    assert hidden_words("ACME\u202e dtL\u202e") == (
        "U+202E, right-to-left override: on other screens it is not seen and turns around the text after it",
    )
    assert hidden_words("plain") == ()
