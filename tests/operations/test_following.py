"""What `oz0 dev` does in its studio with each save: the version, its findings, another name, what is kept on disk."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from base import db
from base.clock import boot_time
from catalog.models import Function, LintFinding, Plugin, PluginVersion, Stage, Tool
from catalog.operations import listings, plugins
from catalog.queries import linted
from catalog.rules import listing_file
from catalog.rules.listing import listing_digest
from catalog.rules.problems import BadPlugin
from catalog.rules.servers import MeasuredListing
from jobs.models import Starter
from jobs.operations import intake
from studio.cli import _this_studio
from studio.dev import keeping, reading
from studio.dev.taking import Workplace
from tenants.rules.who import SYSTEM
from tests.builders import a_person, a_tenant
from tests.catalogs import entries

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("D4")]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LOOK = {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
TORN = LOOK | {"name": "torn", "inputSchema": {"type": "object", "required": 3}}


@dataclass
class Author:
    """Somebody who saves the example `billing`, whose server is found to list `found`."""

    folder: Path
    workplace: Workplace
    found: tuple[Mapping[str, Any], ...] = field(default=(LOOK,))

    def writes(self, old: str, new: str) -> None:
        manifest = self.folder / "oz0-plugin.yaml"
        assert old in manifest.read_text()
        manifest.write_text(manifest.read_text().replace(old, new))

    def saves(self) -> None:
        saved = reading.read(self.folder, {})
        listed = entries(*map(dict, self.found))
        listing = MeasuredListing(listing_digest(listed), "2025-06-18", "billing", "1", listed)
        measured = {tool.id: listing for tool in saved.spec.tools}
        files = {**saved.files, listing_file.LISTING_FILE: listing_file.write(saved.files, measured).encode()}
        self.workplace.take(saved, files, measured, boot_time())

    def current(self) -> list[str]:
        with db.read(self.workplace.tenant):
            here = PluginVersion.objects.filter(stage=Stage.CURRENT, plugin__removed_at__isnull=True)
            return sorted(here.values_list("plugin__name", flat=True))

    def there(self) -> list[str]:
        """The versions whose files are on the disk."""
        with db.read(self.workplace.tenant):
            rows = PluginVersion.objects.order_by("version").values_list("version", "folder")
            return [version for version, folder in rows if Path(folder).is_dir()]


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Author:
    tenant = a_tenant()
    person = a_person(tenant)
    monkeypatch.setattr(_this_studio, "me", lambda: (tenant, person))
    monkeypatch.setattr(_this_studio, "home", lambda: tmp_path / "home")
    (tmp_path / "home").mkdir()
    skipped = shutil.ignore_patterns("__pycache__", "oz0-listing.json")
    return Author(shutil.copytree(EXAMPLES / "billing", tmp_path / "billing", ignore=skipped), Workplace())


def test_a_save_is_linted_with_what_its_servers_were_seen_to_list(author: Author) -> None:
    author.found = (LOOK, TORN)
    author.saves()
    tenant = author.workplace.tenant
    with db.read(tenant):
        version = PluginVersion.objects.get(stage=Stage.CURRENT)
        assert set(Function.objects.values_list("name", flat=True)) == {"look", "torn"}
        assert not Tool.objects.filter(plugin_version=version, measure_due_at__isnull=False).exists()
    assert (tenant, version.pk) in linted.outdated()
    author.workplace.tidy()
    with db.read(tenant) as now:
        assert Tool.objects.filter(plugin_version=version, measure_due_at__lte=now).exists()  # a node starts it now
        assert LintFinding.objects.filter(plugin_version=version, code="tools.schema", function="torn").exists()
    assert (tenant, version.pk) not in linted.outdated()


def test_no_node_lists_what_the_author_is_about_to_unless_they_are_gone(author: Author) -> None:
    files = reading.read(author.folder, {}).files
    tenant, home = author.workplace.tenant, author.workplace.home
    taken = plugins.register_listed(tenant=tenant, files=files, home=home, actor=SYSTEM)
    with db.read(tenant) as now:
        tool = Tool.objects.get(plugin_version=taken.version)
    assert tool.measure_due_at is not None
    assert now < tool.measure_due_at <= now + plugins.CALLER_LISTS_IN
    listed = entries(LOOK)
    measured = MeasuredListing(listing_digest(listed), "2025-06-18", "billing", "1", listed)
    listings.store(tenant=tenant, tool_id=tool.pk, measured=measured, began=boot_time())
    with db.read(tenant):
        assert Tool.objects.get(pk=tool.pk).measure_due_at is None


def test_a_plugin_that_is_renamed_takes_the_place_of_its_last_name(author: Author) -> None:
    author.saves()
    assert author.current() == ["billing"]
    author.writes("name: billing", "name: invoices")
    author.saves()
    assert author.current() == ["invoices"]
    with db.read(author.workplace.tenant):
        assert Plugin.objects.get(name="billing").removed_at is not None
    author.writes("name: invoices", "name: billing")
    author.saves()
    assert author.current() == ["billing"]


def test_a_new_name_that_cannot_be_taken_leaves_the_last_one_as_it_was(author: Author) -> None:
    author.saves()
    author.writes("name: billing", "name: invoices")
    with pytest.MonkeyPatch.context() as patch:

        def refused(**_: object) -> None:
            raise BadPlugin([])

        patch.setattr(plugins, "register_listed", refused)
        with pytest.raises(BadPlugin):
            author.saves()
    assert author.current() == ["billing"]
    author.saves()
    assert author.current() == ["invoices"]


def test_the_files_of_the_last_versions_are_kept_and_no_others(author: Author, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST", 2)
    numbers = [f"9.0.{number}" for number in range(6)]
    before = next(line for line in (author.folder / "oz0-plugin.yaml").read_text().splitlines() if "version:" in line)
    for number in numbers:
        author.writes(before, before := f"version: {number}")
        author.saves()
        if number == numbers[1]:
            tenant = author.workplace.tenant
            intake.start_job(
                tenant=tenant, agent="billing-clerk", given={}, starter=Starter.API_KEY, person=None, title="Goes on"
            )
        author.workplace.tidy()
    # a version that a job runs with, the current one, and two before that
    assert author.there() == [numbers[1], *numbers[-3:]]
    author.writes(before, f"version: {numbers[0]}")
    author.saves()
    assert author.there() == [*numbers[:2], *numbers[-3:]]  # as it was once: saved again, it is there again
