"""Hand-written YAML is read strictly, and cannot blow up."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base import yaml_files
from base.yaml_files import BadYaml, load


def refused(text: str) -> BadYaml:
    with pytest.raises(BadYaml) as caught:
        load(text)
    return caught.value


def test_plain_data_is_read_with_the_line_of_every_key_and_value():
    root = load(
        "name: billing\ntools:\n  - id: billing\n    slots: 4\n    sensitive: true\n    ratio: 0.5\n    none:\n"
    )
    assert root.plain() == {
        "name": "billing",
        "tools": [{"id": "billing", "slots": 4, "sensitive": True, "ratio": 0.5, "none": None}],
    }
    tool = root.value["tools"].item.value[0]
    assert tool.line == 3
    assert tool.value["slots"].line == 4


def test_words_that_other_readers_turn_into_something_else_stay_text():
    text = "a: yes\nb: off\nc: 2026-11-01\nd: 0x1F\ne: '12'\nf: 1_000\ng: .inf\n"
    assert load(text).plain() == {
        **{"a": "yes", "b": "off", "c": "2026-11-01", "d": "0x1F"},
        **{"e": "12", "f": "1_000", "g": ".inf"},
    }


def test_a_key_written_twice_is_refused_by_name_with_both_lines():
    error = refused("a: 1\nb: 2\na: 3\n")
    assert (error.line, error.message) == (3, "the key 'a' is here twice, first on line 1")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: !!python/object/apply:os.system [ls]\n", 1),
        ("a: 1\nb: !secret x\n", 2),
        ("? [a, b]\n: 1\n", 1),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: *nowhere\n", 1),
        ("a: &a [*a]\n", 1),
        ("a: [1, 2\nb: 3\n", 2),
        ("a: 'open\n", 2),
        ("a: \x00\n", 1),
        ("- " * 40 + "x", 1),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line_and_a_fix(text: str, line: int):
    error = refused(text)
    assert error.line == line
    assert error.fix


def test_an_alias_is_read_as_the_value_it_stands_for():
    assert load("a: &one {x: 1}\nb: *one\n").plain() == {"a": {"x": 1}, "b": {"x": 1}}


@pytest.mark.timeout(5)
def test_an_alias_bomb_is_refused_before_it_unfolds():
    """CASES S11."""
    levels = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for one, two in zip("abcdefgh", "bcdefghi", strict=True):
        levels.append(f"{two}: &{two} [{', '.join([f'*{one}'] * 10)}]")
    bomb = "\n".join(levels)
    assert len(bomb) < 700
    tracemalloc.start()
    assert "unfolds to more than" in refused(bomb).message
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * 2**20


def test_a_file_of_too_many_bytes_or_values_is_refused():
    assert "larger than" in refused("x" * (yaml_files.MAX_BYTES + 1)).message
    assert "unfolds" in refused("[" + "1," * (yaml_files.MAX_NODES + 1) + "]").message


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_and_nothing_else(text: str):
    try:
        load(text).plain()
    except BadYaml as error:
        assert error.line >= 1
        assert error.fix
