"""What lint found is of the files and listings of now, also after a crash, an upgrade and the same files once more."""

import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from base import db, ids
from catalog.models import LintFinding, LintReport, PluginVersion, Tool
from catalog.operations import linting, listings
from catalog.operations.plugins import register, take_up
from catalog.queries import linted
from catalog.rules import linting as rules
from catalog.rules.listing import listing_digest
from catalog.rules.servers import MeasuredListing
from jobs.queries import due
from jobs.tasks import pulse
from jobs.tasks.pulse import Pulse
from tenants.rules.who import SYSTEM
from tests.builders import a_tenant
from tests.catalogs import entries

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("T6")]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FINE = {"name": "fine", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
TORN = FINE | {"name": "torn", "inputSchema": {"type": "object", "required": 3}}


class Billing:
    """An example plugin, registered and linted before it was listed."""

    def __init__(self, tmp_path: Path, tenant: str = "acme") -> None:
        self.tenant, self.home = a_tenant(tenant), tmp_path / "home"
        skipped = shutil.ignore_patterns("__pycache__", "oz0-listing.json")
        self.folder = shutil.copytree(EXAMPLES / "billing", tmp_path / "billing", ignore=skipped)
        self.version = self.register()

    def register(self) -> UUID:
        return register(tenant=self.tenant, folder=self.folder, home=self.home, actor=SYSTEM).version

    def lists(self, *raw: dict[str, Any]) -> None:
        """The server is found to list these, and whoever found it is gone before it is linted."""
        found = entries(*raw)
        with db.read(self.tenant):
            tool = Tool.objects.get(slug="billing", plugin_version=self.version).pk
        measured = MeasuredListing(listing_digest(found), "2025-06-18", "billing", "1", found)
        listings.store(tenant=self.tenant, tool_id=tool, measured=measured)

    @property
    def outdated(self) -> bool:
        return (self.tenant, self.version) in linted.outdated()

    @property
    def codes(self) -> set[str]:
        with db.read(self.tenant):
            return set(LintFinding.objects.filter(plugin_version=self.version).values_list("code", flat=True))


@pytest.fixture
def billing(tmp_path: Path) -> Billing:
    return Billing(tmp_path)


def test_a_listing_that_nobody_came_to_lint_is_found_and_linted(billing: Billing) -> None:
    assert not billing.outdated
    billing.lists(TORN)
    assert billing.outdated
    assert "tools.schema" not in billing.codes
    linting.lint_outdated()
    assert "tools.schema" in billing.codes
    assert not billing.outdated


def test_an_upgrade_that_looks_for_more_lints_everything_anew(
    billing: Billing, monkeypatch: pytest.MonkeyPatch
) -> None:
    with db.write(billing.tenant):
        LintReport.objects.filter(plugin_version=billing.version).update(warnings=77)
    linting.lint_outdated()
    with db.read(billing.tenant):
        assert LintReport.objects.get(plugin_version=billing.version).warnings == 77  # nothing is made twice
    monkeypatch.setattr(rules, "EDITION", rules.EDITION + 1)
    assert billing.outdated
    linting.lint_outdated()
    with db.read(billing.tenant):
        assert LintReport.objects.get(plugin_version=billing.version).warnings != 77


def test_the_same_files_registered_or_taken_up_again_are_linted_where_they_are_not(billing: Billing) -> None:
    billing.lists(TORN)
    assert billing.register() == billing.version
    assert "tools.schema" in billing.codes
    billing.lists(FINE)
    with db.read(billing.tenant):
        digest = PluginVersion.objects.get(pk=billing.version).digest
    assert not take_up(tenant=billing.tenant, plugin="billing", digest=digest, actor=SYSTEM).fresh
    assert "tools.schema" not in billing.codes


def test_a_version_that_is_not_current_and_one_that_cannot_be_read_are_left_alone(billing: Billing) -> None:
    first = billing.version
    (billing.folder / "more.txt").write_text("more")
    second = billing.version = billing.register()
    assert first != second
    with db.write(billing.tenant):
        LintReport.objects.filter(plugin_version__in=[first, second]).delete()
    billing.version = first
    assert not billing.outdated
    billing.version = second
    assert billing.outdated
    with db.write(billing.tenant):
        PluginVersion.objects.filter(pk=second).update(folder="/nowhere/at/all")
    linting.lint_outdated()
    assert billing.codes == {"plugin.files"}
    assert not billing.outdated


def test_one_that_cannot_be_linted_keeps_no_other_from_it(
    billing: Billing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = Billing(tmp_path / "other", "other")
    for one in (billing, other):
        one.lists(TORN)
    really, odd = linting.lint_version, min(billing.version, other.version)

    def lint_version(*, tenant: UUID, version_id: UUID) -> bool:
        if version_id == odd:
            raise ZeroDivisionError
        return really(tenant=tenant, version_id=version_id)

    monkeypatch.setattr(linting, "lint_version", lint_version)
    linting.lint_outdated()
    assert sorted(one.outdated for one in (billing, other)) == [False, True]
    assert str(odd) in caplog.text


def test_a_node_looks_for_it_once_a_minute_and_not_as_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting:
        """A host that notes what it is asked to do."""

        node_id = ids.new()
        asked: list[object] = []

        def soon(self, act: object) -> None:
            self.asked.append(act)

    host: Any = Waiting()
    clock = [1_000.0]
    monkeypatch.setattr(pulse, "boot_time", lambda: clock[0])
    beating = Pulse(host)
    monkeypatch.setattr(due, "measurements", lambda most: ())
    for seconds, asked in ((0, 0), (9, 0), (11, 1), (60, 1), (72, 2), (100, 2)):
        clock[0] = 1_000.0 + seconds
        beating._look_after_tools()
        assert host.asked == [linting.lint_outdated] * asked
