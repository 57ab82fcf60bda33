"""What programs tell of their calls: each event once, and none as another (RULES S6, S7; CASES J11)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid5

import pytest

from base import db
from budgets.models import SpendEvent
from budgets.rules import events
from budgets.rules.words import Period
from tests.budgets.callers import Caller, a_check, a_denial, an_event
from tests.budgets.ledgers import HARD, a_ledger, another, check_counts, sums
from tests.races import Side

pytestmark = pytest.mark.usefixtures("database")
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
type Told = dict[str, Any]


def counted(answer: Any) -> tuple[int, int, int]:
    """Ingested, rejected, duplicates; their sum is what was submitted."""
    assert answer.status_code == 202, answer.content
    told = answer.json()
    found = (told["ingested"], told["rejected"], told["duplicates"])
    assert sum(found) == told["submitted"]
    assert (len(told["rejections"]), len(told["duplicate_events"])) == found[1:]
    return found


@pytest.mark.rule("S7")
def test_an_event_is_taken_once_by_its_call_and_attempt_and_another_under_its_name_is_not_it() -> None:
    """CASES J11: a changed tag, another time: told as a duplicate that is not the same."""
    caller = Caller(a_ledger())
    event = an_event("c1", AT, tags={"team": "a"})
    assert counted(caller.ingest(event, an_event("c2", AT + timedelta(seconds=1)))) == (2, 0, 0)
    elsewhere = {**event, "timestamp": AT.astimezone(timezone(timedelta(hours=2))).isoformat()}
    for again in (event, elsewhere):
        answer = caller.ingest(again)
        assert counted(answer) == (0, 0, 1)
        (duplicate,) = answer.json()["duplicate_events"]
        assert (duplicate["matched_by"], duplicate["same"]) == ("call_id", True)
    for changed in ({"tags": {"team": "b"}}, {"timestamp": "2026-11-30T12:00:00.000001Z"}, {"output_tokens": 1}):
        (duplicate,) = caller.ingest({**event, **changed}).json()["duplicate_events"]
        assert (duplicate["matched_by"], duplicate["same"]) == ("call_id", False)
    retried = {**event, "attempt_index": 1, "timestamp": (AT + timedelta(seconds=2)).isoformat()}
    assert counted(caller.ingest(retried, retried)) == (1, 0, 1)  # in one request too
    assert len(caller.ask("GET", "/usage").json()["usage"]) == 3


@pytest.mark.rule("S7")
def test_the_moment_and_instance_of_another_call_make_a_duplicate_that_says_nothing() -> None:
    ledger = a_ledger()
    caller, other = Caller(ledger), Caller(another(ledger.tenant, name="other"))
    assert counted(caller.ingest(an_event("c1", AT))) == (1, 0, 0)
    (duplicate,) = caller.ingest(an_event("c2", AT)).json()["duplicate_events"]
    assert (duplicate["call_id"], duplicate["matched_by"], duplicate["same"]) == ("c2", "legacy_key", None)
    assert counted(caller.ingest(an_event("c2", AT, instance_id="another"))) == (1, 0, 0)
    assert counted(other.ingest(an_event("c1", AT))) == (1, 0, 0)  # of another project


@pytest.mark.rule("S6")
def test_a_denial_is_taken_as_the_journal_has_it_and_in_no_other_way() -> None:
    """CASES J11."""
    caller = Caller(a_ledger((Period.DAY, "0.01", HARD)))
    checks = [a_check(1), a_check(5, tags={"team": "a"}, agent_run_id="nightly"), a_check(7)]
    batch = caller.submit(*checks).json()
    denial = a_denial(batch, 1, checks[1])
    swapped = {**denial, "call_id": a_denial(batch, 2, checks[2])["call_id"]}
    allowed = {**denial, "call_id": a_denial(batch, 0, checks[0])["call_id"]}
    for other in (
        {**denial, "tags": {"team": "b"}},
        {**denial, "tags": {}},
        {**denial, "timestamp": batch["items"][2]["checked_at"]},
        {**denial, "attempt_index": 1},
        {**denial, "model": "gpt-4o-mini"},
        {**denial, "agent_run_id": "daily"},
        {**denial, "modality": "image"},
        {**denial, "input_tokens": 9_999_999},
        {**denial, "output_tokens": 777},
        {**denial, "input_tokens": 1, "cached_input_tokens": 1},
        {**denial, "call_id": str(uuid5(UUID(batch["operation_id"]), "denial:9"))},
        swapped,
        allowed,
    ):
        (rejection,) = caller.ingest(other).json()["rejections"]
        assert rejection["code"] == "not_as_admitted", other
    assert counted(caller.ingest(denial, a_denial(batch, 2, checks[2]))) == (2, 0, 0)
    (duplicate,) = caller.ingest(denial).json()["duplicate_events"]
    assert (duplicate["matched_by"], duplicate["same"]) == ("call_id", True)
    (run,) = caller.ask("GET", "/runs").json()["runs"]
    assert (run["agent_run_id"], run["calls"], run["denied"], run["cost"]) == ("nightly", 1, 1, "0")


def test_what_is_rejected_is_told_by_its_code_and_keeps_nothing_else_from_being_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = a_ledger()
    caller = Caller(ledger)
    monkeypatch.setattr(events, "MOST_VALUES", 3)
    monkeypatch.setattr(events, "MOST_KEYS", 2)
    moments = (AT + timedelta(seconds=n) for n in range(100))

    def event(**more: Any) -> Told:
        moment = next(moments)
        return an_event(str(moment), moment, **more)

    taken = [event(tags={"team": value}) for value in "abc"]
    answer = caller.ingest(
        *taken,
        event(model="nobody-knows"),
        event(modality="smell"),
        event(tags={"k" * 65: "v"}),
        event(tags={str(n): "" for n in range(11)}),
        event(tags={"team": "d"}),
        event(tags={"team": "a", "site": "x"}),
        event(tags={"third": "x"}),
    )
    assert counted(answer) == (4, 6, 0)
    assert [one["code"] for one in answer.json()["rejections"]] == [
        "unknown_model",
        "unsupported_modality",
        "invalid_tags",
        "invalid_tags",
        "tag_cardinality_exceeded",
        "tag_cardinality_exceeded",
    ]
    assert counted(caller.ingest(event(tags={"team": "d"}), event(tags={"team": "c"}))) == (1, 1, 0)
    odd = ({"timestamp": "2026-11-30T12:00:00"}, {"timestamp": "0001-01-01T00:00:00+23:59"}, {"more": 1})
    for malformed in ([], [event()] * 1_001, *([event(**one)] for one in odd), [{}]):
        assert caller.ask("POST", "/ingest", {"events": malformed}).status_code == 422
    assert counted(caller.ingest(*[event() for _ in range(20)])) == (20, 0, 0)
    assert sums(ledger) == (0, 0, 0)  # none of it is counted
    check_counts(ledger.tenant)


def test_the_same_events_from_many_at_once_are_taken_once() -> None:
    ledger = a_ledger()
    caller = Caller(ledger)
    batch = [an_event(str(n), AT + timedelta(seconds=n), agent_run_id="r") for n in range(20)]
    sides = [Side(lambda: counted(caller.ingest(*batch))).start() for _ in range(4)]
    assert sorted(side.join() for side in sides) == [(0, 0, 20)] * 3 + [(20, 0, 0)]
    with db.read(ledger.tenant):
        assert SpendEvent.objects.count() == 20
    (run,) = caller.ask("GET", "/runs").json()["runs"]
    assert (run["calls"], run["cost"]) == (20, "0.2")


def test_usage_and_runs_are_listed_by_cursor_and_filtered(move_clock: Callable[[timedelta], None]) -> None:
    ledger = a_ledger()
    caller, other = Caller(ledger), Caller(another(ledger.tenant, name="other"))
    for n in range(7):
        status = "error" if n % 2 else "success"
        caller.ingest(an_event(str(n), AT + timedelta(hours=n), agent_run_id=f"run {n}", status=status))
    other.ingest(an_event("foreign", AT, agent_run_id="foreign"))

    def walked(path: str, rows: str, name: str) -> list[Any]:
        found, cursor = [], ""
        while True:
            page = caller.ask("GET", f"{path}limit=3&cursor={cursor}").json()
            found += [row[name] for row in page[rows]]
            if page["next"] is None:
                return found
            cursor = page["next"]

    assert walked("/usage?", "usage", "call_id") == [str(n) for n in reversed(range(7))]
    assert walked("/usage?status=error&", "usage", "call_id") == ["5", "3", "1"]
    since = "2026-11-30T14:00:00Z"
    assert walked(f"/usage?since={since}&until=2026-11-30T16:00:00Z&", "usage", "call_id") == ["3", "2"]
    assert walked("/runs?", "runs", "name") == [f"run {n}" for n in reversed(range(7))]
    (run,) = caller.ask("GET", "/runs?name=run%203").json()["runs"]
    assert walked(f"/usage?run_id={run['run_id']}&", "usage", "agent_run_id") == ["run 3"]
    assert caller.ask("GET", "/runs?name=run").json() == {"runs": [], "next": None}
    for odd in ("cursor=x", "limit=0", "limit=101", "since=x", "more=1", "run_id=run_x"):
        assert caller.ask("GET", f"/usage?{odd}").status_code == 422, odd
