"""What a tool that is marked sensitive was given and answered is seen by who may, and by nobody else, on every page."""

import json
from typing import Any

import pytest

from base import db, ids
from catalog.models import Tool
from jobs.models import Call, Hold
from jobs.operations.holds import Answer
from jobs.rules.orders import End
from jobs.rules.seeing import HIDDEN
from tenants.models import Role
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_person,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    answered,
    made,
    see,
    settle,
)
from tests.pages.visitors import text_of, visitor

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("A14")]
GIVEN, SAID, FAILED, TOLD = "given-4711", "said-4712", "failed-4713", "told-4714"
WORDS = (GIVEN, SAID, FAILED, TOLD)


def pages(world: World) -> list[str]:
    """Every page that shows calls, with calls of the tool in every state on it."""
    done = a_call(world, "look", {"q": GIVEN})
    made(world, done, an_outcome(End.ANSWERED, text=SAID))
    failed = a_call(world, "look", {"q": GIVEN})
    made(world, failed, an_outcome(End.ANSWERED, text=FAILED, is_error=True))
    odd = a_call(world, "ship", {"order": GIVEN})  # which does not fit, and the error quotes it
    running = a_call(world, "note", {"q": GIVEN})
    an_order(world, running)
    held = a_call(world, "refund", {"q": GIVEN})
    told, question = an_unknown_call(world)
    answered(world, question, Answer.HAPPENED, TOLD)
    lost = [an_unknown_call(world) for _ in range(3)]
    alone = a_call(world, "charge", {"q": GIVEN})
    for _ in range(1):
        settle(world, an_order(world, alone), an_outcome(End.BROKEN))
    with db.write(world.tenant):
        Tool.objects.filter(slug="shop").update(sensitive=True)
        Call.objects.filter(pk__in=[call for call, _ in lost]).update(arguments={"q": GIVEN})
    with db.read(world.tenant):
        holds = [ids.show(ids.HOLD, pk) for pk in Hold.objects.values_list("pk", flat=True)]
    found = ["/", "/jobs/", "/approvals/", "/approvals/insights/", "/settings/notices/", "/catalog/policy/replay/"]
    for call in (done, failed, odd, running, held, told, alone):
        shown, job = ids.show(ids.CALL, call), ids.show(ids.JOB, see(world, Call, call).job_id)
        found += [f"/calls/{shown}/", f"/calls/{shown}/?whole=arguments", f"/jobs/{job}/?call={shown}", f"/jobs/{job}/"]
    found += [f"/approvals/{hold}/" for hold in holds]
    found += [f"/approvals/{ids.show(ids.HOLD, lost[0][1])}/group/"]
    return [*found, "/api/v1/holds"]


def seen(client: Any, paths: list[str]) -> dict[str, set[str]]:
    found = {}
    for path in paths:
        response = client.get(path)
        assert response.status_code == 200, path
        found[path] = {word for word in WORDS if word in text_of(response)}
    return found


def test_a_viewer_reads_a_marker_where_an_operator_reads_arguments_and_results() -> None:
    world = a_world()
    paths = pages(world)
    viewer = visitor(world, a_person(world.tenant, "vic", Role.VIEWER))
    operator = visitor(world, a_person(world.tenant, "olga", Role.OPERATOR))
    theirs = seen(operator, paths)
    assert {word for words in theirs.values() for word in words} == set(WORDS), "the control: they are all there"
    assert sum(bool(words) for words in theirs.values()) >= 12
    assert {path: words for path, words in seen(viewer, paths).items() if words} == {}
    marked = [path for path in paths if HIDDEN in text_of(viewer.get(path))]
    assert len(marked) >= 12
    assert not [path for path in paths if HIDDEN in text_of(operator.get(path))]


def test_of_a_tool_that_is_not_marked_everybody_of_the_workspace_sees_them() -> None:
    world = a_world()
    done = a_call(world, "look", {"q": GIVEN})
    made(world, done, an_outcome(End.ANSWERED, text=SAID))
    viewer = visitor(world, a_person(world.tenant, "vic", Role.VIEWER))
    page = text_of(viewer.get(f"/calls/{ids.show(ids.CALL, done)}/"))
    assert GIVEN in page
    assert SAID in page


def test_a_hidden_question_is_still_answered_by_who_may() -> None:
    world = a_world()
    _, hold = a_held_call(world)
    with db.write(world.tenant):
        Tool.objects.filter(slug="shop").update(sensitive=True)
    listed = json.loads(visitor(world).get("/api/v1/holds").content)
    assert [row["id"] for row in listed["holds"]] == [ids.show(ids.HOLD, hold)]
