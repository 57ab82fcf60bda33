"""What is described is what is answered: requests drawn from the description itself, good and bad (CASES S14)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.specs.openapi.checks import positive_data_acceptance

from base import ids
from jobs.rules.orders import End
from tests.budgets.callers import Caller
from tests.budgets.ledgers import another
from tests.builders import a_call, a_held_call, a_job, a_world, an_outcome, made, the_job
from tests.pages.test_tokens import made as a_token
from tests.pages.visitors import visitor

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.timeout(300)]
EXAMPLES = 16  # of each address, good and bad
type Put = Callable[[], None]


@pytest.fixture
def known() -> Mapping[str, str]:
    """What there is in a workspace where something has happened, and the token of somebody in it."""
    world = a_world()
    call = a_call(world, "look", {"q": 1})
    made(world, call, an_outcome(End.ANSWERED, text="said"))
    a_held_call(world)
    a_job(world)
    return {
        "token": a_token(visitor(world), scope=["read", "start"]),
        "key": Caller(another(world.tenant, name="p")).token,
        "jobs": ids.show(ids.JOB, the_job(world, call).pk),
        "calls": ids.show(ids.CALL, call),
        "agents": "clerk",
    }


def addresses(known: Mapping[str, str], mode: GenerationMode, examples: int) -> Iterator[tuple[str, Put]]:
    """Each address with what puts so many drawn requests to it: half of them name what there is, where they name."""
    bearer = {"Authorization": f"Bearer {known['token']}"}
    key = {"Authorization": f"Bearer {known['key']}"}
    told = Client(headers=bearer).get("/api/v1/openapi.json").json()
    for operation in (one for methods in told["paths"].values() for one in methods.values()):
        del operation["security"]  # the token is always sent here, so its want is no mistake that is made
    schema = schemathesis.openapi.from_dict(told)
    schema.app = get_wsgi_application()
    for found in schema.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy(generation_mode=mode), named=st.booleans())
        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        def put(case: Any, named: bool) -> None:
            kind = next((kind for kind in known if f"/{kind}/" in case.path), "")
            unchecked = []
            # which agents and names there are, and what time it is, is not in the description
            if case.method == "POST" or "/check/batches/" in case.path:
                unchecked.append(positive_data_acceptance)
                if named and isinstance(case.body, dict) and "agent" in case.body:
                    case.body["agent"] = known["agents"]
            if named and kind and case.path_parameters:
                case.path_parameters = dict.fromkeys(case.path_parameters, known[kind])
            of_budgets = "/budgets/" in case.path and "/tokens" not in case.path
            case.call_and_validate(headers=key if of_budgets else bearer, excluded_checks=unchecked)

        yield operation.label, put


def test_drawn_requests_find_no_error_of_ours_and_no_answer_that_is_not_described(known: Mapping[str, str]) -> None:
    put_to = []
    for label, put in addresses(known, GenerationMode.POSITIVE, EXAMPLES):
        put()
        put_to.append(label)
    assert len(put_to) == 18
    nothing_wrong = []
    for label, put in addresses(known, GenerationMode.NEGATIVE, EXAMPLES):
        try:
            put()
        except Unsatisfiable:
            nothing_wrong.append(label)
    without = ("{shown}", "/cancel", "{name}/tokens", "/key")
    assert nothing_wrong == [one for one in put_to if one.endswith(without) and "calls" not in one]


@pytest.mark.parametrize("planted", ["error", "undescribed"])
def test_what_is_planted_is_found(planted: str, known: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: an error of ours, and an answer that lacks what the description promises."""

    def plant(*_: object, **__: object) -> Any:
        if planted == "error":
            raise ZeroDivisionError
        return {"waiting": "many"}

    if planted == "error":
        monkeypatch.setattr("jobs.api.jobs.jobs_page", plant)
    else:
        monkeypatch.setattr("approvals.api.holds.read", plant)
    puts = dict(addresses(known, GenerationMode.POSITIVE, 3))
    with pytest.raises((Failure, FailureGroup)) as found:
        puts["GET /api/v1/jobs" if planted == "error" else "GET /api/v1/holds"]()
    assert not found.group_contains(RejectedPositiveData) if isinstance(found.value, FailureGroup) else True
