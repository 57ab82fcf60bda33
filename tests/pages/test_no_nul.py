"""NUL, which PostgreSQL holds in no text, is refused at the door of every page and form."""

import pytest

from base import db
from jobs.models import Job
from tests.builders import a_world
from tests.catalogs import a_remote_tool
from tests.pages.visitors import visitor

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize(
    "path",
    ["/jobs/?q=%00", "/jobs/?%00=a", "/jobs/?agent=a%00", "/approvals/?agent=%00", "/approvals/?tool=a&tool=%00b"],
)
def test_a_query_with_nul_asks_for_what_is_not_there(path: str) -> None:
    person = visitor(a_world())
    assert person.get(path.replace("%00", "x")).status_code == 200  # the control
    assert person.get(path).status_code == 404


@pytest.mark.parametrize("field", ["agent", "title", "input", "once"])
def test_a_form_with_nul_starts_nothing(field: str) -> None:
    world = a_world()
    form = {"agent": "clerk", "title": "a", "input": "{}", "once": "1"}
    assert visitor(world).post("/jobs/new/", form | {field: form[field] + "\0"}).status_code == 400
    with db.read(world.tenant):
        assert not Job.objects.exists()
    assert visitor(world).post("/jobs/new/", form).status_code == 302  # the control


def test_an_approval_whose_entry_is_named_with_nul_is_not_looked_for() -> None:
    world = a_world()
    a_remote_tool(world)
    assert visitor(world).post("/catalog/tools/archive/withdraw/", {"shown": "fetch\0:a"}).status_code == 400
