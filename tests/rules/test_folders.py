"""A folder's files are read within limits, follow no link, and are kept whole or not at all."""

from pathlib import Path

import pytest

from base import folders
from base.folders import BadFolder, files_of, keep


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "plugin"
    for path in ("b.txt", "a/c.txt", ".git/config", "__pycache__/x.pyc", "a/y.pyc"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    return root


def test_every_file_is_read_but_hidden_ones_and_caches(folder: Path) -> None:
    assert files_of(folder) == {"a/c.txt": b"a/c.txt", "b.txt": b"b.txt"}


def test_a_link_to_a_file_or_folder_is_refused_by_name(folder: Path) -> None:
    (folder / "a" / "out").symlink_to("/etc")
    with pytest.raises(BadFolder, match=r"a/out: is a link"):
        files_of(folder)


def test_too_many_or_too_large_files_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MAX_FILES", 1)
    with pytest.raises(BadFolder, match="holds more than 1 files"):
        files_of(folder)
    monkeypatch.setattr(folders, "MAX_FILES", 10)
    monkeypatch.setattr(folders, "MAX_BYTES", 8)
    with pytest.raises(BadFolder, match="fix: keep data out"):
        files_of(folder)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadFolder, match="there is no such folder"):
        files_of(tmp_path / "gone")


def test_files_are_kept_as_they_are_and_a_kept_folder_is_left_alone(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept" / "one"
    keep(files_of(folder), kept)
    assert files_of(kept) == files_of(folder)
    keep(files_of(folder), kept)
    assert files_of(kept) == files_of(folder)
    assert not (kept / "b.txt").stat().st_mode & 0o222
    assert [path.name for path in kept.parent.iterdir()] == ["one"]


def test_kept_files_that_were_changed_are_not_taken_for_what_was_kept(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept" / "one"
    keep(files_of(folder), kept)
    (kept / "a/c.txt").chmod(0o644)
    (kept / "a/c.txt").write_text("other")
    with pytest.raises(BadFolder, match=r"a/c.txt: was changed after it was kept"):
        keep(files_of(folder), kept)


def test_a_path_that_leaves_the_folder_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    with pytest.raises(BadFolder, match="leads out"):
        keep({"../x": b""}, tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []
