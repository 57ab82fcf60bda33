"""A plugin's folder becomes a version in the catalog, once for its files."""

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from base import db
from base.folders import BadFolder
from catalog.models import Agent, Plugin, PluginVersion, Stage, Tool
from catalog.operations.plugins import Registered, register
from catalog.rules.kept_agents import from_json
from catalog.rules.problems import BadPlugin
from jobs.operations.servers import server_of
from tenants.models import AuditEntry
from tenants.rules.who import SYSTEM
from tests.builders import a_tenant

pytestmark = pytest.mark.usefixtures("database")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def billing(tmp_path: Path) -> Path:
    """A copy of an example that a test may change."""
    return shutil.copytree(EXAMPLES / "billing", tmp_path / "billing", ignore=shutil.ignore_patterns("__pycache__"))


def taken(tenant: UUID, folder: Path, tmp_path: Path) -> Registered:
    return register(tenant=tenant, folder=folder, home=tmp_path / "home", actor=SYSTEM)


def edit(folder: Path, old: str, new: str) -> None:
    manifest = folder / "oz0-plugin.yaml"
    assert old in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(old, new))


def stages(tenant: UUID) -> list[tuple[str, str]]:
    with db.read(tenant):
        return list(PluginVersion.objects.order_by("added_at").values_list("version", "stage"))


def test_a_plugin_is_stored_with_its_tools_agents_and_skills(billing: Path, tmp_path: Path) -> None:
    tenant = a_tenant()
    found = taken(tenant, billing, tmp_path)
    assert found.fresh
    with db.read(tenant) as now:
        tool = Tool.objects.select_related("plugin_version").get(plugin_version=found.version)
        assert (tool.slug, tool.timeout, tool.cleanup, tool.slots) == ("billing", 20, 2, 16)
        assert "ledger.jsonl" in tool.check_text["note"]
        assert tool.measure_due_at is not None
        assert tool.measure_due_at <= now
        clerk = from_json(Agent.objects.get(name="billing-clerk").definition)
        assert clerk.rehearsal[1].calls[0].function == "note"
        assert list(tool.plugin_version.skills.values_list("name", flat=True)) == ["bill-with-care"]
        assert list(AuditEntry.objects.values_list("verb", "object")) == [("plugin.registered", "plugin billing")]


def test_its_servers_run_the_files_that_were_registered_whatever_happens_to_the_folder(
    billing: Path, tmp_path: Path
) -> None:
    tenant = a_tenant()
    taken(tenant, billing, tmp_path)
    (billing / "billing_server.py").write_text("changed")
    with db.read(tenant):
        server = server_of(Tool.objects.select_related("plugin_version").get())
    assert Path(server.cwd).parent == tmp_path / "home" / "plugins"
    assert "build(" in (Path(server.cwd) / "billing_server.py").read_text()
    assert Path(server.argv[0]).is_absolute()
    assert "{{" not in " ".join(server.argv)


def test_the_same_files_again_change_nothing(billing: Path, tmp_path: Path) -> None:
    tenant = a_tenant()
    first = taken(tenant, billing, tmp_path)
    (billing / "__pycache__").mkdir()
    (billing / "__pycache__" / "x.pyc").write_text("")
    again = taken(tenant, billing, tmp_path)
    assert (again.version, again.fresh) == (first.version, False)
    with db.read(tenant):
        assert AuditEntry.objects.count() == 1


def test_changed_files_become_the_current_version_and_going_back_takes_up_the_old_one(
    billing: Path, tmp_path: Path
) -> None:
    tenant = a_tenant()
    first = taken(tenant, billing, tmp_path)
    edit(billing, '"1.0.0"', '"1.1.0"')
    second = taken(tenant, billing, tmp_path)
    assert stages(tenant) == [("1.0.0", Stage.OLD), ("1.1.0", Stage.CURRENT)]
    with db.read(tenant):
        assert Tool.objects.get(plugin_version=first.version).measure_due_at is None
    edit(billing, '"1.1.0"', '"1.0.0"')
    back = taken(tenant, billing, tmp_path)
    assert (back.version, back.fresh) == (first.version, True)
    assert second.version != first.version
    assert stages(tenant) == [("1.0.0", Stage.CURRENT), ("1.1.0", Stage.OLD)]


def test_each_tenant_has_its_own(billing: Path, tmp_path: Path) -> None:
    one, other = a_tenant("one"), a_tenant("other")
    assert taken(one, billing, tmp_path).fresh
    assert taken(other, billing, tmp_path).fresh
    with db.read(other):
        assert PluginVersion.objects.count() == 1


@pytest.mark.rule("C1")
def test_a_plugin_that_takes_another_ones_names_is_refused_by_name_and_stores_nothing(
    billing: Path, tmp_path: Path
) -> None:
    tenant = a_tenant()
    taken(tenant, billing, tmp_path)
    edit(billing, "name: billing\n", "name: payments\n")
    with pytest.raises(BadPlugin) as refused:
        taken(tenant, billing, tmp_path)
    assert "plugin billing has tool billing already" in str(refused.value)
    assert "plugin billing has agent auditor already" in str(refused.value)
    with db.read(tenant):
        assert list(Plugin.objects.values_list("name", flat=True)) == ["billing"]


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ("timeout: soon", "tools[0].timeout"),
        ("sandbox: true", "names {{ home }}, which a sandboxed program cannot see"),
    ],
)
def test_a_plugin_that_cannot_be_taken_stores_nothing(billing: Path, tmp_path: Path, new: str, told: str) -> None:
    tenant = a_tenant()
    edit(billing, "timeout: 20", new)
    with pytest.raises(BadPlugin) as refused:
        taken(tenant, billing, tmp_path)
    assert told in str(refused.value)
    with db.read(tenant):
        assert not Plugin.objects.exists()


def test_a_folder_with_a_link_is_refused(billing: Path, tmp_path: Path) -> None:
    (billing / "link").symlink_to("README.md")
    with pytest.raises(BadFolder, match="is a link"):
        taken(a_tenant(), billing, tmp_path)
