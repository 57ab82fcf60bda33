"""`oz0 invite`, `oz0 workspace new` and `oz0 secrets reseal`, in this process, on the test's own database."""

import pytest
from click.testing import CliRunner, Result
from django.conf import LazySettings
from django.test import Client

from base import db, ids
from studio.cli.invite import invite
from studio.cli.secrets import secrets
from studio.cli.workspace import workspace
from tenants.models import AuditEntry, Membership, User
from tenants.operations import vault
from tenants.operations.sign_in import first_tenant
from tenants.queries.seats import seats_of

pytestmark = pytest.mark.usefixtures("database")


def oz0(command: object, *words: str) -> Result:
    return CliRunner().invoke(command, words, catch_exceptions=False)


def test_an_invitation_is_printed_and_lets_somebody_join_as_what_it_says() -> None:
    done = oz0(invite, "--role", "author", "--email", "kim@example.com", "--address", "http://testserver/")
    path = done.output.strip().removeprefix("http://testserver")
    assert path.startswith("/invitation/"), done.output
    assert Client().post(path, {"username": "kim", "password": "quite a long one"}).status_code == 302
    with db.read(first_tenant(ids.new())):
        assert Membership.objects.get(user__username="kim").role == "author"
        assert AuditEntry.objects.get(verb="invitation.made").how == "oz0 invite"
    assert "no e-mail address" in oz0(invite, "--email", "x").output


def test_a_further_workspace_is_made_and_a_name_that_is_taken_is_refused() -> None:
    first_tenant(ids.new())
    assert oz0(workspace, "new", "billing", "--name", "Billing").exit_code == 0
    assert {seat.tenant_name for seat in seats_of(User.objects.get().pk)} == {"Default", "Billing"}
    refused = oz0(workspace, "new", "billing")
    assert refused.exit_code == 1 and "there is a workspace billing already" in refused.output
    assert "no active person 'nobody'" in oz0(workspace, "new", "other", "--admin", "nobody").output


@pytest.mark.rule("A12")
def test_every_vault_is_sealed_anew_so_that_the_old_key_is_needed_no_more(settings: LazySettings) -> None:
    tenant = first_tenant(ids.new())
    oz0(workspace, "new", "billing")
    with db.write(tenant):
        vault.put("variable KEY", "s3cret-value")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [settings.SECRET_KEY]
    done = oz0(secrets, "reseal")
    assert done.exit_code == 0 and "s3cret" not in done.output
    assert "workspace default: 1 sealed anew" in done.output and "workspace billing: 0 sealed anew" in done.output
    settings.SECRET_KEY_FALLBACKS = []
    with db.read(tenant):
        assert vault.get(tenant, "variable KEY") == "s3cret-value"
        assert AuditEntry.objects.get(verb="secrets.resealed").after == {"secrets": 1}
    settings.SECRET_KEY = "a third one, without the second"
    refused = oz0(secrets, "reseal")
    assert (
        refused.exit_code == 1
        and "workspace default" in refused.output
        and "Nothing of it was changed" in refused.output
    )
