"""Untrusted text cannot hide, reorder or imitate anything (RULES A13; CASES S02, S05, A34)."""

import re
import sys
import unicodedata
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.text import Kind, is_hidden, pieces, pretty, safe_block, safe_text, visible

HIDING = [
    0x202E,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0x200B, 0x2010),
    0x2060,
    0xFEFF,
    0x00AD,
    0x061C,
    0xE0001,
    *range(0xE0020, 0xE0080),
    0xE0100,
    0xFE0F,
    0x1D173,
    0x2028,
    0x2029,
    0x00A0,
    0x3164,
    0x2800,
    0x034F,
    0x1B,
    0x00,
    0x08,
    0x0D,
    0x9B,
    0x7F,
]
SCRIPTS = [
    "[x](javascript:alert(1))",
    "<ScRiPt>alert(1)</sCrIpT>",
    "&lt;script&gt;",
    "<img src=x onerror=alert(1)>",
    '<iframe srcdoc="<script>1</script>">',
    "<svg onload=alert(1)>",
    "</pre><h1>Approved by admin</h1>",
    "</bdi>",
    '"><button>Approve</button>',
    "```\n{{x}} {% csrf_token %}",
]


def raw_tags(html: str) -> set[str]:
    return set(re.findall(r"</?([a-zA-Z0-9]+)", html))


@pytest.mark.rule("A13")
@pytest.mark.parametrize("code", HIDING, ids=lambda code: f"U+{code:04X}")
def test_every_hiding_character_is_shown_as_its_code(code: int) -> None:
    text = f"pay{chr(code)}ment"
    assert is_hidden(chr(code))
    for html in (safe_text(text), safe_block(text)):
        assert chr(code) not in html
        assert f">U+{code:04X}</mark>" in html
    assert chr(code) not in visible(text)
    assert f"⟨U+{code:04X}⟩" in visible(text)


@pytest.mark.rule("A13")
def test_plain_text_of_many_languages_is_left_as_it_is() -> None:
    for text in (
        "Straße",
        "naïve café",
        "日本語のテキスト",
        "Привет, мир",
        "ελληνικά",
        "مرحبا",
        "emoji 🎉",
        "x = {y: 1}\nz",
    ):
        assert [piece.kind for piece in pieces(text)] == [Kind.PLAIN]
        assert "".join(piece.text for piece in pieces(text)) == text


@pytest.mark.rule("A13")
def test_four_hundred_spaces_and_five_thousand_blank_lines_become_their_number() -> None:
    assert "400 spaces" in safe_text("amount: 10" + " " * 400 + "0")
    shown = safe_block("done" + "\n" * 5_001 + "Approved by admin", limit=10_000)
    assert "5,000 blank lines" in shown
    assert shown.count("\n") < 5


@pytest.mark.rule("A13")
@pytest.mark.parametrize("text", ["pаypal.com", "gооgle.com", "аррӏе.com"])
def test_a_letter_of_another_alphabet_in_a_latin_host_is_marked(text: str) -> None:
    assert 'class="odd-char"' in safe_text(f"send to {text} now")


@pytest.mark.rule("A13")
def test_an_encoded_host_is_marked() -> None:
    assert 'class="odd-char"' in safe_text("https://xn--pple-43d.com/")


@pytest.mark.rule("A13")
def test_stacked_marks_do_not_paint_over_their_neighbours() -> None:
    assert "U+0301" in safe_text("a" + "\u0301" * 12)
    assert "U+0301" not in safe_text("e\u0301")


@pytest.mark.rule("A13")
@pytest.mark.parametrize("text", SCRIPTS)
def test_markup_in_text_stays_text(text: str) -> None:
    for html in (safe_text(text), safe_block(text)):
        assert raw_tags(html) <= {"bdi", "pre", "mark", "details", "summary"}
        assert html.count("<bdi") + html.count("<pre") == html.count("</bdi") + html.count("</pre")


@pytest.mark.rule("A13")
@given(st.text(max_size=300))
def test_no_text_leaves_its_box_or_brings_markup_of_its_own(text: str) -> None:
    for html in (str(safe_text(text, 100)), str(safe_block(text, 100))):
        assert raw_tags(html) <= {"bdi", "pre", "mark", "details", "summary"}
        assert html.startswith(("<bdi", "<pre"))
        assert html.endswith(("</bdi>", "</pre>", "</details>"))
        outside = re.sub(r'<(bdi|pre) class="said".*?</\1>', "", html, flags=re.DOTALL)
        shown = re.sub(r"<[^>]*>", "", outside)
        assert shown in ("", f"… show all {len(text):,} characters", f"Show all {len(text):,} characters")


def test_long_text_is_cut_and_says_how_long_it_is() -> None:
    assert "show all 5,000 characters" in safe_text("x" * 5_000)
    assert visible("x" * 5_000, 10) == "xxxxxxxxxx… (5,000 characters)"


def test_json_is_indented_and_its_letters_stay_letters() -> None:
    assert pretty({"name": "Ünal", "n": 1.0}) == '{\n  "n": 1,\n  "name": "Ünal"\n}'


MARKED: Final = re.compile(r">U\+([0-9A-F]{4,6})</mark>")

# Default_Ignorable_Code_Point of Unicode, and what else draws nothing or moves others: written down by hand from the
# standard, so that this list is not the product's own.
DRAWS_NOTHING = [
    *range(0x00, 0x0A),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA1),
    0x00AD,
    0x034F,
    0x061C,
    0x115F,
    0x1160,
    0x1680,
    0x17B4,
    0x17B5,
    *range(0x180B, 0x1810),
    *range(0x2000, 0x2010),
    *range(0x2028, 0x2030),
    *range(0x205F, 0x2070),
    0x2800,
    0x3000,
    0x3164,
    *range(0xD800, 0xE000),
    *range(0xFE00, 0xFE10),
    0xFEFF,
    0xFFA0,
    *range(0xFFF0, 0xFFFC),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE1000),
]


NOTHING_YET: Final = [*range(0x40000, 0xE0000), *range(0xF0000, 0x110000)]  # planes without one character


@pytest.mark.rule("A13")
def test_over_all_code_points_none_that_hides_reaches_a_page_and_none_that_is_seen_is_lost() -> None:
    """CASES S02: every one of 1,114,112, by the one output; whole planes of nothing by that for a line, as it is fast.

    Both are made of the same pieces.
    """
    assert all(is_hidden(chr(code)) for code in DRAWS_NOTHING)
    hidden = {code for code in range(sys.maxunicode + 1) if is_hidden(chr(code))}
    for plane in (0, 1, 2, 3, 14):
        for begin in range(plane << 16, (plane + 1) << 16, 0x4000):
            codes = set(range(begin, begin + 0x4000))
            text = "x".join(map(chr, sorted(codes - hidden)))  # between letters, so that no marks stack
            shown = str(safe_block(text + "".join(map(chr, sorted(codes & hidden))), 0x10000))
            raw = set(map(ord, shown))
            assert not raw & hidden - {10}
            assert {int(code, 16) for code in MARKED.findall(shown)} == hidden & codes
            assert codes - hidden - set(map(ord, "\n&<>\"'")) <= raw
    assert set(NOTHING_YET) <= hidden
    for at in range(0, len(NOTHING_YET), 0x4000):
        line = NOTHING_YET[at : at + 0x4000]
        assert visible("".join(map(chr, line)), 0x4000) == "".join(f"⟨U+{code:04X}⟩" for code in line)
    assert {unicodedata.category(chr(code)) for code in hidden} >= {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
