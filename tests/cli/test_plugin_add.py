"""`oz0 plugin add`, in this process, on the test's own database."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from django.conf import settings

from base import db, ids
from catalog.models import Agent, PluginVersion, Stage
from studio.cli.plugin import plugin
from tenants.models import AuditEntry
from tenants.operations.sign_in import first_tenant

pytestmark = pytest.mark.usefixtures("database")
AGENT = """\
name: greeter
model: rehearsal
rehearsal:
  - say: {words}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder of the test's own."""
    monkeypatch.setattr(settings, "OZ0_HOME", tmp_path / "home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plugin with one agent and no tool."""
    (tmp_path / "greeting/agents").mkdir(parents=True)
    (tmp_path / "greeting/oz0-plugin.yaml").write_text('name: greeting\nversion: "1"\nagents: [agents/]\n')
    say(tmp_path / "greeting", "Hello.")
    return tmp_path / "greeting"


def say(folder: Path, words: str) -> None:
    (folder / "agents/greeter.yaml").write_text(AGENT.format(words=words))


def oz0_plugin_add(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(plugin, ["add", *(str(word) for word in words)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def tenant() -> UUID:
    return first_tenant(ids.new())


def test_a_plugin_of_ones_own_is_in_the_catalog_and_in_the_audit_log_in_the_admins_name(folder: Path) -> None:
    assert oz0_plugin_add(folder).output.startswith("added greeting ")
    with db.read(tenant()):
        assert Agent.objects.get(name="greeter").plugin_version.stage == Stage.CURRENT
        entry = AuditEntry.objects.get(verb="plugin.registered")
        assert (entry.actor, entry.how) == ("admin", "oz0 plugin add")


def test_adding_it_again_changes_nothing_and_changed_files_are_the_current_version(folder: Path) -> None:
    oz0_plugin_add(folder)
    assert json.loads(oz0_plugin_add(folder, "--json").output)["done"] == "kept"
    say(folder, "Good morning.")
    assert json.loads(oz0_plugin_add(folder, "--json").output)["done"] == "added"
    with db.read(tenant()):
        stages = list(PluginVersion.objects.order_by("added_at").values_list("stage", flat=True))
        assert stages == [Stage.OLD, Stage.CURRENT]


def test_a_name_that_is_taken_and_a_file_that_is_wrong_are_told_with_the_fix(folder: Path, tmp_path: Path) -> None:
    oz0_plugin_add(folder)
    (folder / "oz0-plugin.yaml").write_text('name: other\nversion: "1"\nagents: [agents/]\n')
    assert "plugin greeting has agent greeter already" in oz0_plugin_add(folder, code=3).output
    (folder / "oz0-plugin.yaml").write_text("name: other\nverison: 1\n")
    assert "oz0-plugin.yaml" in oz0_plugin_add(folder, code=3).output
    assert "no such folder" in oz0_plugin_add(tmp_path / "gone", code=3).output
