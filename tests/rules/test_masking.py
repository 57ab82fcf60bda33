"""Secrets are taken out of a text however they stand in it."""

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as some

from base.masking import CUT, SHOWN, Mask
from catalog.sessions.log import LONGEST, Log

pytestmark = pytest.mark.rule("A14")
TOKEN = "sk-live/77+ä&"


@pytest.mark.parametrize(
    "stands",
    [
        TOKEN,
        quote(TOKEN, safe=""),
        json.dumps(TOKEN),
        base64.b64encode(TOKEN.encode()).decode(),
        f"x{TOKEN}x",
        TOKEN * 2,
    ],
)
def test_a_secret_is_taken_out_in_every_form(stands: str) -> None:
    shown = Mask([TOKEN])(f"before {stands} after")
    assert SHOWN in shown
    assert "sk-live" not in shown
    assert shown.startswith("before ") and shown.endswith(" after")


@given(some.text(min_size=6), some.text(), some.text())
def test_no_secret_of_six_characters_is_ever_left(secret: str, before: str, after: str) -> None:
    line = next(iter(secret.splitlines()), "")
    if len(line) >= 6 and line.strip() and line not in SHOWN:
        assert line not in Mask([secret])(f"{before}{line}{after}").replace(SHOWN, "\0")


def test_a_short_one_is_taken_out_where_it_stands_alone() -> None:
    assert Mask(["pw1"])("pw1: pw12, (pw1) spw1") == f"{SHOWN}: pw12, ({SHOWN}) spw1"


def test_the_longer_of_two_secrets_is_taken_out_whole_and_each_line_of_one_by_itself() -> None:
    assert Mask(["abcdef", "abcdefghi"])("abcdefghi abcdef") == f"{SHOWN} {SHOWN}"
    assert Mask(["first line\nsecond line"])("has second line here") == f"has {SHOWN} here"


@pytest.mark.parametrize("more", ["", "… (99999 characters)"])
def test_what_is_left_of_a_secret_where_a_text_was_cut_is_taken_out(more: str) -> None:
    assert Mask([TOKEN])(f"key=sk-live{more}") == f"key={SHOWN}{more}"


def test_the_end_of_a_text_that_was_cut_inside_a_secret_shows_nothing_of_it() -> None:
    mask = Mask([TOKEN])
    for cut in range(1, len(TOKEN) - CUT + 1):
        assert mask.end(f"{TOKEN[cut:]} and {TOKEN}, more") == f"{SHOWN} and {SHOWN}, more"
        assert mask.end(TOKEN[cut:]) == SHOWN
    assert mask.end(f"{TOKEN}, more") == f"{SHOWN}, more"
    assert mask.end("nothing of it") == "nothing of it"
    assert mask(f"{TOKEN[-CUT:]} is how a whole text may begin") == f"{TOKEN[-CUT:]} is how a whole text may begin"


def test_a_token_of_thousands_of_characters_is_taken_out_at_once_whole_and_cut() -> None:
    token = "".join(f"{number:x}." for number in range(2_000))
    began = time.process_time()
    mask = Mask([token])
    assert mask(f"a {token} b") == f"a {SHOWN} b"
    assert mask(f"a {token[:-1]}") == mask(f"a {token[:CUT]}") == f"a {SHOWN}"
    assert mask(f"a {token[: CUT - 1]}") == f"a {token[: CUT - 1]}"
    assert time.process_time() - began < 1.0


def test_without_secrets_nothing_changes() -> None:
    assert Mask([])("a text") == "a text"
    assert Mask(["", "  ", "\n"])("a   text\n") == "a   text\n"


@pytest.mark.rule("C8")
def test_a_servers_own_secrets_never_enter_its_log_not_even_cut() -> None:
    log = Log(secrets=[TOKEN])
    log.add("stderr", f"token is {TOKEN}".encode())
    log.add("stderr", "x" * (LONGEST - 7) + TOKEN + "y" * 50)
    said = "\n".join(log.tail())
    assert "sk-live" not in said
    assert said.count(SHOWN) == 2
