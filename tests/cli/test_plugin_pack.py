"""`oz0 plugin pack`: the same bytes wherever, nothing that should stay at home, and nothing that is wrong."""

import hashlib
import json
import os
import shutil
import time
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from base import folders
from catalog.operations.unpacking import files_in_pack
from catalog.rules.listing_file import write
from catalog.rules.plugins import digest_of
from catalog.rules.servers import MeasuredListing
from studio.cli.plugin import plugin
from tests.builders import READ, a_function
from tests.rules.good_pack import FILES


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A plugin that was measured."""
    folder = tmp_path / "shelf"
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    measure(folder)
    return folder


def measure(folder: Path) -> None:
    listed = MeasuredListing("d", "2026-07-28", "shelf", "1", (a_function("look", READ),))
    (folder / "oz0-listing.json").write_text(write(folders.files_of(folder), {"shelf": listed}))


def oz0(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(plugin, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


@pytest.mark.rule("D3")
@pytest.mark.rule("T5")
def test_the_same_files_give_the_same_bytes_whatever_the_order_times_rights_owner_umask_and_folder(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = json.loads(oz0("pack", shelf, "-o", tmp_path / "one.oz0.zip", "--json").stdout)
    other = tmp_path / "elsewhere" / "a folder of another name"
    for path in sorted(folders.files_of(shelf), reverse=True):
        (other / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shelf / path, other / path)
        (other / path).chmod(0o700)
        os.utime(other / path, (10**9, 10**9))
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    before = os.umask(0o077)
    try:
        two = json.loads(oz0("pack", other, "-o", tmp_path / "two.oz0.zip", "--json").stdout)
    finally:
        os.umask(before)
        monkeypatch.undo()
        time.tzset()
    packed = (tmp_path / "one.oz0.zip").read_bytes()
    assert packed == (tmp_path / "two.oz0.zip").read_bytes()
    assert one["sha256"] == two["sha256"] == hashlib.sha256(packed).hexdigest()
    assert one["digest"] == two["digest"] == digest_of(folders.files_of(shelf))
    assert files_in_pack(tmp_path / "one.oz0.zip") == folders.files_of(shelf)
    assert "oz0-listing.json" in one["files"]
    with zipfile.ZipFile(tmp_path / "one.oz0.zip") as archive:  # any other program opens it too
        assert archive.testzip() is None
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o100644}
    (other / "shelf_server.py").write_text("print('another')\n")
    measure(other)
    assert json.loads(oz0("pack", other, "-o", tmp_path / "two.oz0.zip", "--json").stdout)["sha256"] != one["sha256"]


@pytest.mark.rule("D3")
def test_what_belongs_to_one_machine_or_looks_like_a_secret_is_left_out_and_named(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = json.loads(oz0("pack", shelf, "-o", shelf.parent / "clean.oz0.zip", "--json").stdout)
    for path in (
        ".git/config",
        ".env",
        ".venv/x",
        "__pycache__/a.pyc",
        "agents/b.pyc",
        "venv/bin/python",
        "tls/server.pem",
    ):
        (shelf / path).parent.mkdir(parents=True, exist_ok=True)
        (shelf / path).write_text("x")
    (shelf / "credentials.json").write_text("{}")
    (shelf / "notes.txt").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    monkeypatch.chdir(shelf)
    done = oz0("pack")
    assert (shelf / "shelf-1.0.0.oz0.zip").exists()
    for path, why in {
        ".git/": "hidden",
        ".env": "hidden",
        ".venv/": "hidden",
        "__pycache__/": "a cache",
        "venv/": "a cache",
        "agents/b.pyc": "compiled",
        "tls/server.pem": "looks like a secret",
        "credentials.json": "looks like a secret",
        "notes.txt": "looks like a secret",
    }.items():
        assert f"left out {path}: {why}" in done.output
    again = json.loads(oz0("pack", "--json").stdout)  # its own pack lies in the folder by now
    assert again["left_out"]["shelf-1.0.0.oz0.zip"] == "a pack"
    assert again["sha256"] == clean["sha256"]
    assert {one["code"] for one in again["findings"]} == {"tools.annotations"}, "its listing is no older"


@pytest.mark.rule("T3")
def test_a_plugin_over_its_budget_is_not_packed(shelf: Path) -> None:
    (shelf / "agents/shelver.yaml").write_text(
        "name: clerk\nmodel: rehearsal\nfunctions: [shelf.*]\nlimits: {tool_tokens: 1}\nrehearsal:\n  - say: Done.\n"
    )
    measure(shelf)
    done = oz0("pack", shelf, "-o", shelf.parent / "x.oz0.zip", code=1)
    assert "error[tools.budget]: agents/shelver.yaml:4: limits.tool_tokens: agent clerk" in done.output
    assert "fix:" in done.output
    assert not (shelf.parent / "x.oz0.zip").exists()


@pytest.mark.rule("D3")
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "out").symlink_to("/etc/passwd"), "out: is a link"),
        (lambda folder: os.mkfifo(folder / "pipe"), "pipe: is neither a file nor a folder"),
        (lambda folder: (folder / "con.py").write_text(""), "con.py: is called like a device of Windows"),
        (lambda folder: (folder / "ab:c").write_text(""), "ab:c: has : in its name"),
        (lambda folder: (folder / "a\nb").write_text(""), "has a control character"),
        (lambda folder: [(folder / name).write_text("") for name in ("README", "Readme")], "capitals"),
        (lambda folder: (folder / "old.zip").write_bytes(b"PK\x03\x04"), "old.zip: is a ZIP inside the pack"),
        (lambda folder: (folder / "agents/oz0-plugin.yaml").write_bytes(FILES["oz0-plugin.yaml"]), "second manifest"),
        (lambda folder: (folder / "big.bin").write_bytes(b"\0" * (33 * 2**20)), "big.bin"),
        (lambda folder: (folder / "oz0-plugin.yaml").write_text("name: shelf\nverison: 1\n"), "oz0-plugin.yaml:2"),
    ],
)
def test_what_cannot_be_packed_is_refused_by_name_with_the_fix_and_nothing_is_written(shelf: Path, spoil, said) -> None:
    spoil(shelf)
    before = sorted(shelf.parent.iterdir())
    done = oz0("pack", shelf, "-o", shelf.parent / "x.oz0.zip", code=1)
    assert said in done.output
    assert "fix: " in done.output
    assert sorted(shelf.parent.iterdir()) == before
    assert json.loads(oz0("pack", shelf, "--json", code=1).stdout)["exit"] == 1


@pytest.mark.rule("T5")
def test_a_server_that_was_never_measured_is_not_packed_and_an_old_listing_is_told(shelf: Path) -> None:
    (shelf / "shelf_server.py").write_text("print('newer')\n")
    assert "warning[listing.old]" in oz0("pack", shelf, "-o", shelf.parent / "x.oz0.zip").stderr
    oz0("pack", shelf, "-o", shelf.parent / "x.oz0.zip", "--strict", code=1)
    (shelf / "oz0-listing.json").unlink()
    assert "run `oz0 plugin inspect`" in oz0("pack", shelf, "-o", shelf.parent / "x.oz0.zip", code=3).output
    (shelf / "oz0-plugin.yaml").write_text('name: shelf\nversion: "1.0.0"\nagents: [agents/]\n')
    oz0("pack", shelf, "-o", shelf.parent / "agents-alone.oz0.zip")


def test_a_folder_that_is_not_there_and_a_file_that_cannot_be_written_are_wrong_calls(shelf: Path) -> None:
    assert "there is no such folder" in oz0("pack", shelf / "gone", code=2).output
    assert "name a file that can be written" in oz0("pack", shelf, "-o", shelf / "oz0-plugin.yaml/x.zip", code=2).output
