"""`oz0 holds` and `GET /api/v1/holds`: what waits, for pagers; nobody answers by them."""

import json
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from base import db, ids
from jobs.models import Hold
from studio.cli.holds import holds
from tenants.models import Role
from tests.builders import World, a_call, a_held_call, a_person, a_world, an_unknown_call
from tests.pages.visitors import visitor

pytestmark = pytest.mark.usefixtures("database")


def oz0(*words: str) -> Result:
    return CliRunner().invoke(holds, words, catch_exceptions=False)


def shown(hold: UUID) -> str:
    return ids.show(ids.HOLD, hold)


def closed(world: World) -> int:
    with db.read(world.tenant):
        return Hold.objects.filter(closed_at__isnull=False).count()


@pytest.mark.rule("A5")
def test_a_pager_reads_what_waits_by_command_and_api_the_oldest_first_and_answers_nothing() -> None:
    world = a_world()
    assert "Nothing waits for a person." in oz0().output
    assert oz0("--quiet").exit_code == 0
    a_call(world, "refund", {"card": "4111-1111"})
    _, unknown = an_unknown_call(world)
    said = json.loads(oz0("--json").output)
    assert (said["waiting"], len(said["holds"]), said["next"]) == (2, 2, None)
    first, second = said["holds"]
    assert (first["kind"], first["function"], first["agent"]) == ("approve", "shop.refund", "clerk")
    assert second["id"] == shown(unknown)
    assert second["url"].endswith(f"/approvals/{shown(unknown)}/")
    assert "4111" not in oz0("--json").output
    assert [row["id"] for row in json.loads(oz0("--json", "--kind", "unknown").output)["holds"]] == [shown(unknown)]
    lines = oz0().output.splitlines()
    assert len(lines) == 2
    assert "unknown  shop.note" in lines[1]
    assert oz0("--quiet").exit_code == 1

    viewer = visitor(world, a_person(world.tenant, "kim", Role.VIEWER))
    answer = viewer.get("/api/v1/holds")
    assert answer.status_code == 200
    assert [row["id"] for row in answer.json()["holds"]] == [first["id"], second["id"]]
    assert "4111" not in answer.content.decode()
    (only,) = viewer.get("/api/v1/holds", {"kind": "unknown"}).json()["holds"]
    (rest,) = viewer.get("/api/v1/holds", {"after": first["id"]}).json()["holds"]
    assert only["id"] == rest["id"] == second["id"]
    for odd in ({"after": "hold_x"}, {"kind": "any"}, {"after": second["call"]}):
        assert viewer.get("/api/v1/holds", odd).status_code == 400
    for method in ("post", "put", "patch", "delete"):
        refused = getattr(viewer, method)("/api/v1/holds", {"answer": "approve", "hold": first["id"]})
        assert refused.status_code == 405
    assert closed(world) == 0


def test_another_workspace_sees_none_of_it_and_a_stranger_is_told_to_sign_in() -> None:
    world, other = a_world(), a_world("other")
    a_held_call(world)
    assert visitor(other).get("/api/v1/holds").json()["holds"] == []
    assert visitor(world).__class__().get("/api/v1/holds").status_code == 401
