"""Removing a plugin: nothing of it starts on any path, what ran ends, history keeps its names, and it can come back."""

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from base import db
from base.folders import BadFolder
from catalog.models import Arrival, Came, Function, Listing, Plugin, PluginVersion, Stage, Tool
from catalog.operations import listings
from catalog.operations.forgetting import folder_of
from catalog.operations.plugins import NoSuchVersion, register, take, take_up
from catalog.rules.problems import BadPlugin
from catalog.rules.secret_names import variables_of
from jobs.models import Call, Hold, Job
from jobs.operations import intake
from jobs.operations.removing import StillRuns, delete_for_good, remove
from jobs.rules.orders import End
from jobs.rules.states import CallState, HoldState, JobState
from jobs.rules.why import Why
from tenants.models import AuditEntry, Secret
from tenants.operations import vault
from tenants.rules.who import SYSTEM
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_job,
    a_retrying_call,
    a_tenant,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    see,
    settle,
)
from tests.rules.good_pack import FILES

pytestmark = pytest.mark.usefixtures("database")


def removed(world: World, name: str = "shop") -> None:
    assert remove(tenant=world.tenant, plugin=name, actor=SYSTEM) is not None


def test_no_job_starts_and_no_call_and_what_waited_is_refused_with_the_reason() -> None:
    world = a_world()
    running = a_job(world)
    queued = a_call(world, "note")
    held, hold = a_held_call(world, "refund")
    retried = a_retrying_call(world, "look")
    removed(world)
    with pytest.raises(intake.CannotStart, match="no agent named 'clerk'"):
        a_job(world)
    for call in (queued, held):
        found = see(world, Call, call)
        assert (found.state, found.reason) == (CallState.REFUSED, Why.TOOL_GONE)
    assert see(world, Hold, hold).state == HoldState.WITHDRAWN
    with db.write(world.tenant) as now:
        Call.objects.filter(pk=retried).update(due_at=now)
    with pytest.raises(AssertionError, match="cannot be claimed"):
        an_order(world, retried)
    assert (see(world, Call, retried).state, see(world, Call, retried).reason) == (CallState.FAILED, Why.TOOL_GONE)
    (late,) = a_turn(world, running, "note")  # a job that was under way asks for one more
    asked = see(world, Call, late)
    assert (asked.state, asked.reason) == (CallState.ERRORED, Why.NO_SUCH_FUNCTION)
    assert "Never listed" not in asked.detail
    assert see(world, Job, running).agent_name == "clerk"
    with db.read(world.tenant):
        assert not Tool.objects.filter(measure_due_at__isnull=False).exists()
        assert [(one.verb, one.object) for one in AuditEntry.objects.filter(verb="plugin.removed")] == [
            ("plugin.removed", "plugin shop")
        ]
        assert Function.objects.filter(name="note").exists(), "history keeps its names"


def test_a_call_that_was_queued_in_the_same_moment_is_not_claimed() -> None:
    world = a_world()
    call = a_call(world, "note")
    with db.write(world.tenant):  # all that the commit of a removal leaves, before anything else was done
        PluginVersion.objects.update(stage=Stage.REMOVED)
    with pytest.raises(AssertionError, match="cannot be claimed"):
        an_order(world, call)
    assert (see(world, Call, call).state, see(world, Call, call).reason) == (CallState.REFUSED, Why.TOOL_GONE)


def test_what_runs_ends_by_itself_and_is_not_tried_again() -> None:
    world = a_world()
    ends, breaks = a_call(world, "note"), a_call(world, "look")
    first, second = an_order(world, ends), an_order(world, breaks)
    removed(world)
    assert see(world, Call, ends).state == CallState.RUNNING
    settle(world, first, an_outcome(End.ANSWERED))
    assert see(world, Call, ends).state == CallState.SUCCEEDED
    settle(world, second, an_outcome(End.BROKEN))
    with db.write(world.tenant) as now:
        Call.objects.filter(pk=breaks).update(due_at=now)
    with pytest.raises(AssertionError, match="cannot be claimed"):
        an_order(world, breaks)
    assert see(world, Call, breaks).state in (CallState.FAILED, CallState.UNKNOWN)
    assert see(world, Job, second.job_id).state != JobState.FAILED


def test_removing_twice_does_nothing_and_a_listing_that_comes_late_is_not_kept() -> None:
    world = a_world()
    with db.read(world.tenant):
        tool = Tool.objects.get(slug="shop").pk
    removed(world)
    assert remove(tenant=world.tenant, plugin="shop", actor=SYSTEM) is None
    assert remove(tenant=world.tenant, plugin="gone", actor=SYSTEM) is None
    listings.not_measured(tenant=world.tenant, tool_id=tool, why="late")
    listings.measure_again(tenant=world.tenant, tool_id=tool)
    with db.read(world.tenant):
        assert Tool.objects.get(pk=tool).measure_due_at is None
        assert not Listing.objects.filter(current=True).exists()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def taken(tenant: UUID, home: Path, came: Came = Came.UPLOAD, **changed: bytes):
    files = {**FILES, **{path.replace("__", "."): content for path, content in changed.items()}}
    return take(tenant=tenant, files=files, home=home, actor=SYSTEM, came=came, file_name="shelf.oz0.zip")


NEXT = FILES["oz0-plugin.yaml"].replace(b"1.0.0", b"1.1.0")


def test_versions_are_kept_with_how_they_came_and_one_goes_back_to_an_earlier_one_in_a_step(home: Path) -> None:
    tenant = a_tenant()
    first = taken(tenant, home)
    second = taken(tenant, home, **{"oz0-plugin.yaml": NEXT})
    assert (second.number, second.before) == ("1.1.0", "1.0.0")
    with db.read(tenant):
        arrival = Arrival.objects.get(version=first.version)
        assert (arrival.came, arrival.file_name) == (Came.UPLOAD, "shelf.oz0.zip")
        assert {path for path, _, _ in arrival.files} == set(FILES)
        kept = Path(PluginVersion.objects.get(pk=first.version).folder)
    back = take_up(tenant=tenant, plugin="shelf", digest=first.digest, actor=SYSTEM)
    assert (back.version, back.fresh) == (first.version, True)
    assert not take_up(tenant=tenant, plugin="shelf", digest=first.digest, actor=SYSTEM).fresh
    with pytest.raises(NoSuchVersion):
        take_up(tenant=tenant, plugin="shelf", digest="0" * 64, actor=SYSTEM)
    take_up(tenant=tenant, plugin="shelf", digest=second.digest, actor=SYSTEM)
    (kept / "shelf_server.py").chmod(0o644)
    (kept / "shelf_server.py").write_text("changed")
    with pytest.raises(BadFolder, match="its files were changed since"):
        take_up(tenant=tenant, plugin="shelf", digest=first.digest, actor=SYSTEM)
    shutil.rmtree(kept)
    with pytest.raises(BadFolder, match="import this version again"):
        take_up(tenant=tenant, plugin="shelf", digest=first.digest, actor=SYSTEM)


def test_a_pack_of_a_number_that_is_here_with_other_files_is_refused_and_a_folder_is_told(home: Path) -> None:
    tenant = a_tenant()
    taken(tenant, home)
    assert not taken(tenant, home).fresh
    with pytest.raises(BadPlugin, match=r"oz0-plugin.yaml:2: version: 1.0.0 is here already with other files"):
        taken(tenant, home, shelf_server__py=b"print('other')\n")
    with db.read(tenant):
        assert PluginVersion.objects.count() == 1
    assert not any(
        "shelf" in path.name for path in (home / "plugins").iterdir() if len(list((home / "plugins").iterdir())) > 1
    )
    assert taken(tenant, home, Came.FOLDER, shelf_server__py=b"print('other')\n").renumbered


def test_a_removed_plugin_comes_back_by_importing_it_again_or_by_one_of_its_versions(home: Path) -> None:
    tenant = a_tenant()
    first = taken(tenant, home)
    for bring in (
        lambda: taken(tenant, home),
        lambda: take_up(tenant=tenant, plugin="shelf", digest=first.digest, actor=SYSTEM),
        lambda: taken(tenant, home, **{"oz0-plugin.yaml": NEXT}),
    ):
        assert remove(tenant=tenant, plugin="shelf", actor=SYSTEM) is not None
        with db.read(tenant):
            assert set(PluginVersion.objects.values_list("stage", flat=True)) == {Stage.REMOVED}
        assert bring().fresh
        with db.read(tenant):
            assert Plugin.objects.get().removed_at is None
            assert Stage.REMOVED not in PluginVersion.objects.values_list("stage", flat=True)
            assert Tool.objects.filter(plugin_version__stage=Stage.CURRENT, measure_due_at__isnull=False).exists()


def test_while_it_is_gone_another_plugin_may_take_its_names_and_then_it_cannot_come_back(
    home: Path, tmp_path: Path
) -> None:
    tenant = a_tenant()
    first = taken(tenant, home)
    remove(tenant=tenant, plugin="shelf", actor=SYSTEM)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/oz0-plugin.yaml").write_text(
        'name: other\nversion: "1"\ntools:\n  - id: shelf\n    mcp: [python, x.py]\n'
    )
    register(tenant=tenant, folder=tmp_path / "other", home=home, actor=SYSTEM)
    with pytest.raises(BadPlugin, match="plugin other has tool shelf already"):
        take_up(tenant=tenant, plugin="shelf", digest=first.digest, actor=SYSTEM)


def variables(tenant: UUID) -> set[str]:
    """The names of what the vault holds."""
    with db.read(tenant):
        return set(Secret.objects.values_list("name", flat=True))


def test_what_a_removed_plugin_left_is_deleted_for_good_and_nothing_else(home: Path) -> None:
    tenant, elsewhere = a_tenant(), a_tenant("elsewhere")
    first, second = taken(tenant, home), taken(tenant, home, **{"oz0-plugin.yaml": NEXT})
    taken(elsewhere, home)
    with db.read(tenant):
        folders = dict(PluginVersion.objects.values_list("version", "folder"))
        (slug,) = set(Tool.objects.values_list("slug", flat=True))
    its, others = f"{variables_of('shelf', slug)}KEY", f"{variables_of('other', slug)}KEY"
    with db.write(tenant):
        for name in (its, f"{vault.PLAIN}{variables_of('shelf', slug)}LEVEL", others, "variable KEY"):
            vault.put(name, "a value")

    def deleted() -> list[str] | None:
        return delete_for_good(tenant=tenant, plugin="shelf", home=home, actor=SYSTEM)

    assert deleted() is None, "it is not removed"
    assert its in variables(tenant)
    assert remove(tenant=tenant, plugin="shelf", actor=SYSTEM) is not None
    assert deleted() == []
    assert variables(tenant) == {others, "variable KEY"}
    assert not Path(folders["1.1.0"]).exists()
    assert Path(folders["1.0.0"]).is_dir(), "another workspace's plugin runs from it"
    with db.read(tenant):
        entry = AuditEntry.objects.get(verb="plugin.deleted")
        assert entry.after == {"versions": 2, "values": 2}
        assert PluginVersion.objects.count() == 2, "history keeps its names"
    for version in (first, second):
        with pytest.raises(BadFolder, match=r"were deleted\. fix: import this version again"):
            take_up(tenant=tenant, plugin="shelf", digest=version.digest, actor=SYSTEM)
    again = taken(tenant, home, **{"oz0-plugin.yaml": NEXT})
    assert (again.version, Path(folders["1.1.0"]).is_dir()) == (second.version, True)
    with db.read(tenant):
        assert PluginVersion.objects.get(pk=again.version).folder == folders["1.1.0"]


def test_nothing_of_it_is_deleted_while_a_call_of_it_runs_and_another_try_finds_what_was_left(home: Path) -> None:
    world = a_world()
    call = a_call(world, "note")
    order = an_order(world, call)
    removed(world)
    with pytest.raises(StillRuns, match="1 of its calls still run"):
        delete_for_good(tenant=world.tenant, plugin="shop", home=home, actor=SYSTEM)
    settle(world, order, an_outcome(End.ANSWERED))
    outside = home / "elsewhere"
    outside.mkdir(parents=True)
    with db.write(world.tenant):
        PluginVersion.objects.update(folder=str(outside))
    (left,) = delete_for_good(tenant=world.tenant, plugin="shop", home=home, actor=SYSTEM) or []
    assert "is not in the studio's state folder" in left
    assert outside.is_dir()
    left_behind = folder_of(home, "shop", "d-shop")
    left_behind.mkdir(parents=True)
    assert delete_for_good(tenant=world.tenant, plugin="shop", home=home, actor=SYSTEM) == []
    assert not left_behind.exists()
