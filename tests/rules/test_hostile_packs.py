"""A pack that anybody may have made is refused whole, by the entry's name, before anything of it is written (RULES D3).

CASES S10: traversal, absolute names, drive letters, links, devices, names one machine takes for one, a million files,
bombs, zero bytes. What it costs is measured: processor time, and the memory that Python takes.
"""

import io
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from base import folders
from catalog.operations.unpacking import files_in_pack
from catalog.rules.packs import pack
from catalog.rules.plugins import digest_of, read_plugin
from catalog.rules.problems import BadPlugin
from tests.rules.good_pack import FILES
from tests.rules.hostile_packs import PACK, E, built, hostile

SECONDS, BYTES = 1.0, 50 * 2**20
HOSTILE = [
    pytest.param(name, content, entry, why, id=name.replace("\0", "")) for name, content, entry, why in hostile()
]


class Writes:
    """Everything that this process writes, makes, moves or removes while it is watched, by Python's audit events."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.watching = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, words: tuple[object, ...]) -> None:
        if not self.watching:
            return
        opened = event == "open" and (not isinstance(words[1], str) or set(words[1]) & set("wax+"))
        if (opened and words[1] is not None) or event in _CHANGES:
            self.seen.append(f"{event} {words}")

    @contextmanager
    def watched(self) -> Iterator[list[str]]:
        self.seen, self.watching = [], True
        try:
            yield self.seen
        finally:
            self.watching = False


_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate"}
WRITES = Writes()


def imported(path: Path, home: Path) -> Path:
    """What every door does with a pack: read it whole, see what plugin it is, and only then keep its files."""
    files = files_in_pack(path)
    kept = home / "plugins" / f"{read_plugin(files).name}-{digest_of(files)[:16]}"
    folders.keep(files, kept)
    return kept


def test_there_are_sixty_of_them_and_more() -> None:
    assert len({case.values[0] for case in HOSTILE}) == len(HOSTILE) >= 60


@pytest.mark.rule("D3")
@pytest.mark.parametrize(("name", "content", "entry", "why"), HOSTILE)
def test_a_hostile_pack_is_refused_by_the_entrys_name_at_little_cost_and_nothing_is_written(
    tmp_path: Path, name: str, content: bytes, entry: str, why: str
) -> None:
    path = tmp_path / PACK
    path.write_bytes(content)
    before = time.process_time()
    with WRITES.watched() as written, pytest.raises(BadPlugin) as refused:
        imported(path, tmp_path / "home")
    spent = time.process_time() - before
    tracemalloc.start()
    try:
        with pytest.raises(BadPlugin):
            files_in_pack(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    told = [problem for problem in refused.value.problems if problem.file == entry and why in problem.message]
    assert told, f"{refused.value} names no {entry!r} for {why!r}"
    assert all(problem.fix for problem in refused.value.problems)
    assert spent < SECONDS
    assert peak < BYTES
    assert not written
    assert [file.name for file in tmp_path.iterdir()] == [PACK]


@pytest.mark.rule("D3")
def test_a_good_pack_passes_the_same_door_and_what_it_writes_is_seen(tmp_path: Path) -> None:
    path = tmp_path / PACK
    path.write_bytes(b"".join(pack(FILES)))
    with WRITES.watched() as written:
        kept = imported(path, tmp_path / "home")
    assert folders.files_of(kept) == FILES
    assert any("os.mkdir" in one for one in written)
    assert all(str(tmp_path / "home") in one for one in written if one.startswith("os.mkdir"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["home", PACK]


def test_a_pack_made_by_another_program_is_read_too_with_its_folders_and_dates(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("agents")
        for path, content in FILES.items():
            archive.writestr(path, content)
    (tmp_path / PACK).write_bytes(made.getvalue())
    assert files_in_pack(tmp_path / PACK) == FILES


def test_several_problems_are_told_at_once_and_not_a_thousand(tmp_path: Path) -> None:
    (tmp_path / PACK).write_bytes(built(E("../x"), E("con"), E("a.py", flags=0x809)))
    with pytest.raises(BadPlugin) as refused:
        files_in_pack(tmp_path / PACK)
    assert {problem.file for problem in refused.value.problems} == {"../x", "con", "a.py"}
    (tmp_path / PACK).write_bytes(built(*(E(f"../{n}") for n in range(500))))
    with pytest.raises(BadPlugin) as refused:
        files_in_pack(tmp_path / PACK)
    assert len(refused.value.problems) == 50


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPlugin, match=r"gone.oz0.zip: cannot be read: No such file"):
        files_in_pack(tmp_path / "gone.oz0.zip")
