"""`oz0 set-password`, in this process, on the test's own database."""

import pytest
from click.testing import CliRunner, Result
from django.contrib.auth import authenticate

from base import db, ids
from studio.cli.set_password import set_password
from tenants.models import AuditEntry
from tenants.operations.sign_in import first_tenant

pytestmark = pytest.mark.usefixtures("database")
LONG = "long enough to be one"


def oz0(*words: str, typed: str = "") -> Result:
    return CliRunner().invoke(set_password, words, input=typed, catch_exceptions=False)


@pytest.mark.rule("A12")
def test_the_first_person_can_sign_in_with_what_was_typed_twice_and_it_is_audited_without_it() -> None:
    done = oz0(typed=f"{LONG}\n{LONG}\n")
    assert done.exit_code == 0, done.output
    assert LONG not in done.output
    assert authenticate(username="admin", password=LONG) is not None
    with db.read(first_tenant(ids.new())):
        noted = list(AuditEntry.objects.filter(verb="person.password_set").values_list("actor", "how", "after"))
    assert noted == [("admin", "oz0 set-password", None)]


def test_a_short_password_and_somebody_unknown_are_refused() -> None:
    assert "at least 12 characters" in oz0("--password", "short").output
    assert "no active person 'nobody'" in oz0("--password", LONG, "--user", "nobody").output
    assert authenticate(username="admin", password="short") is None
