"""Untrusted text cannot hide, reorder or imitate anything (RULES A13; CASES S02, S05, A34)."""

import re

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
