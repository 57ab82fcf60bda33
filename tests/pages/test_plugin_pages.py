"""Plugins in the browser: the list, one with its versions, an upload, going back, and removing."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile

from base import db
from base.portable import MAX_PACK
from catalog.models import Came, PluginVersion, Stage
from catalog.operations.plugins import take
from catalog.rules.packs import pack
from tenants.models import AuditEntry, Role
from tenants.rules.who import SYSTEM
from tests.builders import World, a_held_call, a_person, a_world
from tests.pages.visitors import plain, text_of, visitor
from tests.rules.good_pack import FILES
from tests.rules.hostile_packs import E, built

pytestmark = pytest.mark.usefixtures("database")
NEXT = {**FILES, "oz0-plugin.yaml": FILES["oz0-plugin.yaml"].replace(b"1.0.0", b"1.1.0"), "more.txt": b"more"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setattr(settings, "OZ0_HOME", tmp_path / "home")
    return tmp_path / "home"


def sent(world: World, content: bytes, *, name: str = "shelf.oz0.zip", person: int | None = None) -> Any:
    given = SimpleUploadedFile(name, content, "application/zip")
    return visitor(world, person).post("/catalog/upload/", {"pack": given}, follow=True)


def packed(files: dict[str, bytes]) -> bytes:
    return b"".join(pack(files))


def test_an_uploaded_pack_is_current_and_the_same_again_changes_nothing(home: Path) -> None:
    world = a_world()
    words = plain(text_of(sent(world, packed(FILES))))
    assert "shelf 1.0.0 is current now" in words
    assert "came from an upload (shelf.oz0.zip), by pat-acme" in words
    assert "shelf_server.py" in words
    assert "These very files are current already, as 1.0.0: nothing was changed." in plain(
        text_of(sent(world, packed(FILES)))
    )
    with db.read(world.tenant):
        version = PluginVersion.objects.get(plugin__name="shelf")
        assert Path(version.folder).parent == home / "plugins"
        assert AuditEntry.objects.filter(verb="plugin.registered").count() == 1
    words = plain(text_of(sent(world, packed(NEXT))))
    assert "shelf 1.1.0 is current now. 1.0.0 is kept, one click away." in words
    assert "What changed" in words
    assert "more.txt" in words


@pytest.mark.rule("D3")
def test_a_pack_that_cannot_be_taken_keeps_the_page_with_every_problem_and_its_fix(home: Path) -> None:
    world = a_world()
    answer = sent(world, built(E("../x"), E("<b>con", b"")))
    assert answer.status_code == 422
    html = text_of(answer)
    assert "../x" in html
    assert "leads out of the plugin" in html
    assert "<b>con" not in html
    assert 'type="file"' in html
    spoilt = {**FILES, "oz0-plugin.yaml": b"name: shelf\nverison: 1\nslots: 2\n"}
    words = plain(text_of(sent(world, packed(spoilt))))
    assert "oz0-plugin.yaml:2" in words
    assert "did you mean version?" in words
    assert "oz0-plugin.yaml:3" in words
    assert "no file was sent" in text_of(visitor(world).post("/catalog/upload/"))
    assert not home.exists()
    with db.read(world.tenant):
        assert not PluginVersion.objects.filter(plugin__name="shelf").exists()


def test_a_body_larger_than_any_pack_is_not_read() -> None:
    world = a_world()
    answer = visitor(world).post(
        "/catalog/upload/", b"x", "multipart/form-data; boundary=x", CONTENT_LENGTH=2 * MAX_PACK
    )
    assert answer.status_code == 413
    assert "larger than the 36 MiB" in text_of(answer)


def test_only_authors_and_admins_bring_plugins_and_only_admins_remove_them() -> None:
    world = a_world()
    author = a_person(world.tenant, "ann", Role.AUTHOR)
    approver = a_person(world.tenant, "vic", Role.OPERATOR)
    assert sent(world, packed(FILES), person=approver).status_code == 403
    assert sent(world, packed(FILES), person=author).status_code == 200
    digest = {"digest": "0"}
    assert visitor(world, approver).post("/catalog/plugins/shelf/take-up/", digest).status_code == 403
    assert visitor(world, author).post("/catalog/plugins/shelf/remove/").status_code == 403
    for path in ("/catalog/plugins/shelf/", "/catalog/plugins/", "/catalog/upload/", "/catalog/plugins/shelf/remove/"):
        assert visitor(world, approver).get(path).status_code == 200
    assert "Admins remove plugins; your role here is author." in text_of(
        visitor(world, author).get("/catalog/plugins/shelf/")
    )
    strict = visitor(world, strict=True).post("/catalog/upload/", {"pack": SimpleUploadedFile("x", b"x")})
    assert strict.status_code == 403, "a form without its token"


def test_going_back_is_one_click_and_versions_are_compared(home: Path) -> None:
    world = a_world()
    first, _ = (
        take(tenant=world.tenant, files=files, home=home, actor=SYSTEM, came=Came.PACK) for files in (FILES, NEXT)
    )
    page = text_of(visitor(world).get("/catalog/plugins/shelf/"))
    assert f'value="{first.digest}"' in page
    done = visitor(world).post("/catalog/plugins/shelf/take-up/", {"digest": first.digest}, follow=True)
    assert "shelf 1.0.0 is current now" in text_of(done)
    with db.read(world.tenant):
        assert PluginVersion.objects.get(pk=first.version).stage == Stage.CURRENT
    older = plain(text_of(visitor(world).get(f"/catalog/plugins/shelf/?version={first.digest[:12]}")))
    assert "What changed" not in older
    assert visitor(world).get("/catalog/plugins/shelf/?version=ffff").status_code == 404
    assert visitor(world).get("/catalog/plugins/gone/").status_code == 404
    assert visitor(world).post("/catalog/plugins/shelf/take-up/", {"digest": "0" * 64}).status_code == 404


def test_removing_says_beforehand_what_it_does_and_afterwards_the_plugin_is_told_as_removed() -> None:
    world = a_world()
    a_held_call(world)
    before = plain(text_of(visitor(world).get("/catalog/plugins/shop/remove/")))
    assert "1 tool leaves the catalog: shop" in before
    assert "1 agent starts no job any more: clerk" in before
    assert "1 call that waits for a node or an answer is refused" in before
    after = plain(text_of(visitor(world).post("/catalog/plugins/shop/remove/", follow=True)))
    assert "shop is removed. Its versions are kept" in after
    assert "Its agents start no job" in after
    assert "Bring it back" in after
    assert visitor(world).get("/catalog/plugins/shop/remove/").status_code == 404
    assert "It was removed before" in text_of(visitor(world).post("/catalog/plugins/shop/remove/", follow=True))
    listed = plain(text_of(visitor(world).get("/catalog/plugins/?standing=removed")))
    assert "shop" in listed
    assert "No plugin fits this filter" in text_of(visitor(world).get("/catalog/plugins/?standing=here&q=zzz"))
    assert visitor(world).get("/catalog/plugins/?standing=odd").status_code == 404
    assert visitor(world).get("/jobs/").status_code == 200


def test_another_workspaces_plugin_is_not_there(home: Path) -> None:
    world, other = a_world(), a_world("other")
    take(tenant=world.tenant, files=FILES, home=home, actor=SYSTEM, came=Came.PACK)
    assert visitor(other).get("/catalog/plugins/shelf/").status_code == 404


def test_an_admin_deletes_for_good_what_a_removed_plugin_left(home: Path) -> None:
    world = a_world()
    take(tenant=world.tenant, files=FILES, home=home, actor=SYSTEM, came=Came.UPLOAD)
    page = "/catalog/plugins/shelf/"
    assert "Delete for good" not in text_of(visitor(world).get(page))
    visitor(world).post(f"{page}remove/")
    words = plain(text_of(visitor(world).get(page)))
    assert "The files of 1 version." in words
    assert "nobody can bring them back" in words
    author = a_person(world.tenant, "ann", Role.AUTHOR)
    assert visitor(world, author).post(f"{page}delete/").status_code == 403
    assert "Admins remove plugins" in text_of(visitor(world, author).get(page))
    done = plain(text_of(visitor(world).post(f"{page}delete/", follow=True)))
    assert "The files of shelf and its values in the vault are deleted." in done
    assert "only importing it again brings it back" in done
    assert "files deleted" in done
    assert "Delete for good" not in done
    assert not any((home / "plugins").iterdir())
