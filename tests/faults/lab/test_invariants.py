"""The controls of the lab: evidence that is in order passes, and each thing made wrong on purpose is caught by name."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from base.tags import status
from tests.faults.lab.draw import Trial
from tests.faults.lab.evidence import Evidence, Line, Made, Noted
from tests.faults.lab.invariants import INVARIANTS, broken

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KEY, DIGEST = "job/1", "d"


def a_trial(function: str = "note", server: str = "stdio", **more: Any) -> Trial:
    fields: dict[str, Any] = {"fault": "calm", "moment": "", "plan": {}, "says": "truth"}
    return Trial(number=1, server=server, function=function, **{**fields, **more})


def a_line(at: float, what: str, **more: Any) -> Line:
    return Line(**{"at": at, "what": what, "key": KEY, "digest": DIGEST, **more})


def made(number: int, state: str = "answered", start: float = 0, end: float | None = 2, **more: Any) -> Made:
    began = NOON + timedelta(seconds=start)
    ended = None if end is None else NOON + timedelta(seconds=end)
    fields = {"reason": "answered", "limit_at": began + timedelta(seconds=4), "went_out": True, **more}
    return Made(number=number, state=state, started_at=began, ended_at=ended, **fields)


def pages(state: str, effect: str, attempts: int, job: str, more: str = "") -> dict[str, str]:
    tried = "".join(f"<b>Attempt {number + 1}</b>" for number in range(attempts))
    call = f'<span class="word">{state}</span> effect {status("effect", effect, "bare")} {tried} {more}'
    return {"call_page": call, "job_page": f'<span class="word">{job}</span>'}


def events(attempts: int, to: str = "SUCCEEDED") -> tuple[Noted, ...]:
    told: list[tuple[str, bool, dict[str, Any]]] = [
        ("job.started", False, {}),
        ("call.submitted", True, {"to": "queued"}),
    ]
    state = "queued"
    for number in range(attempts):
        told += [
            ("attempt.started", True, {"attempt": f"a{number}"}),
            ("call.moved", True, {"frm": state, "to": "running"}),
            ("attempt.ended", True, {"attempt": f"a{number}"}),
        ]
        state = to if number == attempts - 1 else "retrying"
        told.append(("call.moved", True, {"frm": "running", "to": state}))
    return tuple(Noted(seq + 1, kind, mine, data) for seq, (kind, mine, data) in enumerate(told))


def once(**changes: Any) -> Evidence:
    """A plain write that was made once, with everything as it should be."""
    right = Evidence(
        trial=a_trial(),
        key=KEY,
        digest=DIGEST,
        state="SUCCEEDED",
        effect="made",
        final=True,
        job_state="COMPLETED",
        job_over=True,
        asked=False,
        attempts=(made(1),),
        events=events(1),
        counted=len(events(1)),
        ledger=(a_line(1, "received"), a_line(1.1, "effect"), a_line(1.2, "replied")),
        **pages("SUCCEEDED", "made", 1, "COMPLETED"),
    )
    return replace(right, **changes)


def twice(function: str = "charge", **changes: Any) -> Evidence:
    """A call of two attempts, of which the first broke off before it did anything."""
    right = once(
        trial=a_trial(function),
        attempts=(made(1, "broken", reason="connection_broke"), made(2, start=3, end=5)),
        events=events(2),
        counted=len(events(2)),
        ledger=(
            *(a_line(1, "received"), a_line(1.5, "gone")),
            *(a_line(4, "received"), a_line(4.1, "effect"), a_line(4.2, "replied")),
        ),
        **pages("SUCCEEDED", "made", 2, "COMPLETED"),
    )
    return replace(right, **changes)


def resumed(**changes: Any) -> Evidence:
    """A search that went on from where the first attempt had got to."""
    point = {"token": "step-2", "progress": 2}
    right = twice(
        "search",
        attempts=(made(1, "broken", reason="connection_broke"), made(2, start=3, end=5, resumed_from=2.0)),
        ledger=(
            *(a_line(1, "received"), a_line(1.1, "told", step=2), a_line(1.5, "gone")),
            *(a_line(4, "received", resume=point), a_line(4.2, "replied")),
        ),
    )
    return replace(right, **changes)


def cancelled(**changes: Any) -> Evidence:
    """A plain write that was cancelled before its effect, and may have acted as far as anybody knows."""
    moved = events(1, "CANCELED")
    right = once(
        state="CANCELED",
        effect="maybe",
        job_state="CANCELED",
        attempts=(made(1, "stopped", reason="stopped_cancel"),),
        events=moved,
        counted=len(moved),
        ledger=(a_line(1, "received"), a_line(1.5, "cancelled")),
        canceled_at=2.5,
        **pages("CANCELED", "maybe", 1, "CANCELED", "It may have acted before it stopped."),
    )
    return replace(right, **changes)


RIGHT = (once(), twice(), resumed(), cancelled())
LEDGER, CANCELLED, TWO = once().ledger, cancelled(), twice()
EFFECT = a_line(1.15, "effect")

WRONG: tuple[tuple[str, str, Evidence], ...] = (
    ("plain_writes_at_most_once", "a plain write made twice", once(ledger=(*LEDGER, EFFECT))),
    (
        "plain_writes_at_most_once",
        "made three times with one answer",
        once(ledger=(*LEDGER, EFFECT, EFFECT), answers=("again",)),
    ),
    ("keyed_writes_once_per_key", "a keyed write made twice", replace(TWO, ledger=(*TWO.ledger, EFFECT))),
    ("success_is_one_effect", "a success without a write", once(ledger=(LEDGER[0], LEDGER[2]))),
    ("success_is_one_effect", "a read that never came", once(trial=a_trial("look"), ledger=())),
    ("none_is_nothing", "a write that is said to be none", once(state="FAILED", effect="none")),
    ("maybe_is_shown", "an effect that the page leaves out", once(**pages("SUCCEEDED", "none", 1, "COMPLETED"))),
    ("maybe_is_shown", "no word of what it may have done", cancelled(**pages("CANCELED", "maybe", 1, "CANCELED"))),
    ("pages_show_the_states", "an old state on the page", once(**pages("running", "made", 1, "COMPLETED"))),
    ("pages_show_the_states", "an attempt left out", twice(**pages("SUCCEEDED", "made", 1, "COMPLETED"))),
    ("pages_show_the_states", "no page of the job", once(job_page="status 500")),
    ("attempts_are_apart", "the next before the end", twice(attempts=(TWO.attempts[0], made(2, start=1, end=5)))),
    (
        "attempts_are_apart",
        "the next before a lost one's limit",
        twice(attempts=(made(1, "lost", reason="node_lost"), made(2, start=3, end=5))),
    ),
    (
        "attempts_are_apart",
        "both at the server at once",
        twice(ledger=(TWO.ledger[0], *TWO.ledger[2:4], a_line(4.15, "gone"), TWO.ledger[4])),
    ),
    (
        "nothing_after_canceled",
        "a write after CANCELED",
        replace(CANCELLED, ledger=(CANCELLED.ledger[0], a_line(3, "effect"), a_line(3.1, "replied"))),
    ),
    ("sent_as_recorded", "two requests for one attempt", once(ledger=(LEDGER[0], *LEDGER))),
    ("sent_as_recorded", "another key", once(ledger=(a_line(1, "received", key="job/2"), *LEDGER[1:]))),
    ("sent_as_recorded", "other arguments", once(ledger=(a_line(1, "received", digest="e"), *LEDGER[1:]))),
    (
        "sent_as_recorded",
        "a request of an attempt that did not go out",
        once(attempts=(made(1, "not_made", went_out=False),)),
    ),
    ("attempts_are_allowed", "a plain write tried twice", twice("note")),
    ("attempts_are_allowed", "a number left out", twice(attempts=(TWO.attempts[0], made(3, start=3, end=5)))),
    (
        "resumes_where_it_was",
        "a point that was never told",
        replace(resumed(), ledger=tuple(line for line in resumed().ledger if line.what != "told")),
    ),
    ("resumes_where_it_was", "a trace that hides it", resumed(attempts=TWO.attempts)),
    ("everything_ends", "a call that stays running", once(state="running", final=False, job_over=False)),
    ("everything_ends", "a job that stays running", once(job_state="running", job_over=False)),
    ("everything_ends", "an open attempt of a call that is over", once(attempts=(made(1, "open", end=None),))),
    ("events_tell_all", "a gap", once(events=events(1)[:3] + events(1)[4:])),
    ("events_tell_all", "a number used twice", once(events=(*events(1), events(1)[-1]))),
    ("events_tell_all", "a counter ahead of its events", once(counted=99)),
    (
        "events_tell_all",
        "two ends of one attempt",
        once(
            events=(*events(1), Noted(7, "attempt.ended", True, {"attempt": "a0"})),
            counted=7,
        ),
    ),
    (
        "events_tell_all",
        "a state that no event told",
        cancelled(events=events(1), counted=len(events(1))),
    ),
)


@pytest.mark.parametrize("right", RIGHT, ids=["once", "twice", "resumed", "cancelled"])
def test_evidence_in_order_violates_nothing(right: Evidence) -> None:
    assert broken(right) == []


@pytest.mark.parametrize(("invariant", "wrong"), [(name, wrong) for name, _, wrong in WRONG], ids=[w[1] for w in WRONG])
def test_what_is_made_wrong_on_purpose_is_caught(invariant: str, wrong: Evidence) -> None:
    assert invariant in {violation.invariant for violation in broken(wrong)}


def test_every_invariant_has_its_control() -> None:
    assert {name for name, _, _ in WRONG} == {invariant.__name__ for invariant in INVARIANTS}


def test_what_is_allowed_is_not_called_wrong() -> None:
    again = once(ledger=(*LEDGER, EFFECT), answers=("again",))
    assert "plain_writes_at_most_once" not in {violation.invariant for violation in broken(again)}
    stubborn = replace(CANCELLED, trial=a_trial("stubborn"), ledger=(*CANCELLED.ledger, a_line(3, "effect")))
    assert broken(stubborn) == []
    boxed = replace(stubborn, trial=a_trial("stubborn", server="box"))
    assert [violation.invariant for violation in broken(boxed)] == ["nothing_after_canceled"]
