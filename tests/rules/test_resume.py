"""Where a further attempt goes on, or the honest reason why it starts over (RULES P2, P3, P4, CASES P03, P09)."""

from typing import Any

import pytest

from jobs.rules.orders import Progress, ResumePoint
from jobs.rules.progress import next_progress
from jobs.rules.resume import Left, StartOver, how_to_go_on, sentence

POINT = ResumePoint("t2", 2.0, 4.0)
SILENT = Left(None, "here", reported=False, odd_token=False)
TOLD = Left(POINT, "here", reported=True, odd_token=False)
NO_TOKEN = Left(None, "here", reported=True, odd_token=False)
ODD = Left(None, "here", reported=True, odd_token=True)


def go_on(*left: Left, remote: bool = True, takes_part: bool = True) -> ResumePoint | StartOver:
    return how_to_go_on(left, remote=remote, takes_part=takes_part, scope="here")


@pytest.mark.rule("P2")
@pytest.mark.rule("P3")
@pytest.mark.parametrize("left", [(TOLD,), (TOLD, SILENT), (TOLD, SILENT, SILENT), (TOLD, NO_TOKEN), (SILENT, TOLD)])
def test_the_last_token_is_passed_on_with_the_progress_it_came_with(left: tuple[Left, ...]):
    assert go_on(*left) == POINT


@pytest.mark.rule("P4")
@pytest.mark.parametrize(
    ("how", "words"),
    [
        (go_on(TOLD, remote=False), "a plugin's own server shares one session"),
        (go_on(TOLD, takes_part=False), "the function does not take part"),
        (go_on(SILENT), "nothing was reported"),
        (go_on(NO_TOKEN, SILENT), "no token was given"),
        (go_on(ODD), "a malformed token was given"),
        (go_on(Left(POINT, "elsewhere", reported=True, odd_token=False)), "over another connection"),
    ],
)
def test_each_reason_to_start_over_has_its_own_honest_sentence(how: Any, words: str):
    assert isinstance(how, StartOver)
    assert sentence(None, None, how).startswith("started over: ")
    assert words in sentence(None, None, how)


@pytest.mark.rule("P4")
def test_a_resumed_attempt_says_from_where():
    assert sentence(2.0, 4.0, "") == "resumed from progress 2 of 4"
    assert sentence(2.5, None, "") == "resumed from progress 2.5"
    assert sentence(None, None, "") == ""


def told(*items: dict[str, Any]) -> Progress | None:
    last = None
    for item in items:
        last = next_progress(last, item)
    return last


def with_token(progress: float, token: Any) -> dict[str, Any]:
    return {"progress": progress, "total": 4, "_meta": {"oz0/resume": token}}


@pytest.mark.rule("P3")
@pytest.mark.parametrize("token", ["t", "a" * 256, "AZaz09._:~+/=-"])
def test_a_token_of_the_promised_letters_is_kept_with_its_progress(token: str):
    assert told(with_token(2, token), {"progress": 3}) == Progress(3.0, None, ResumePoint(token, 2.0, 4.0))


@pytest.mark.rule("P3")
@pytest.mark.parametrize(
    "token", ["", "a" * 257, "a b", "a\n", "\n", "😀", "a\0", "é", 7, None, True, ["t"], {"token": "t"}]
)
def test_any_other_token_is_ignored_and_noted_and_leaves_the_one_before(token: Any):
    """CASES P09."""
    assert told(with_token(1, token)) == Progress(1.0, 4.0, None, odd_token=True)
    assert told(with_token(1, "good"), with_token(2, token)) == Progress(
        2.0, 4.0, ResumePoint("good", 1.0, 4.0), odd_token=True
    )


@pytest.mark.rule("P1")
@pytest.mark.parametrize("value", [0.5, float("nan"), float("inf"), "2", None, True])
def test_a_token_that_came_with_no_valid_progress_is_no_token(value: Any):
    assert told(with_token(1, "good"), with_token(value, "other")) == Progress(1.0, 4.0, ResumePoint("good", 1.0, 4.0))


def test_a_token_is_in_no_text_of_ours():
    assert "t2" not in repr(POINT)
