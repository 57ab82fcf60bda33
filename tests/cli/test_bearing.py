"""`oz0 plugin test` sends each server what no client should, and what a studio adds to a call (CASES I03, R18)."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from base import ids
from catalog.rules import bearing as bearing_rules
from catalog.rules.bearing import Bearing, Borne
from catalog.rules.frames import FRAMES, NOBODY
from catalog.rules.servers import ServerSpec
from catalog.sessions import bear, bearing
from studio.cli.plugin import plugin
from tests.repo.tree import ROOT

SERVER = ROOT / "tests" / "servers" / "brittle.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plugin of one server that bears little."""
    shutil.copy(SERVER, tmp_path / "brittle.py")
    manifest = 'name: shop\nversion: "1"\ntools:\n  - id: shop\n    mcp: ["python", "-m", "brittle"]\n'
    (tmp_path / "oz0-plugin.yaml").write_text(manifest)
    return tmp_path


def served(folder: Path, *words: str) -> None:
    manifest = folder / "oz0-plugin.yaml"
    manifest.write_text(
        manifest.read_text().replace('"brittle"', ", ".join(f'"{word}"' for word in ("brittle", *words)))
    )


def checked(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(plugin, ["test", str(folder), *words], catch_exceptions=False)


def findings(done: Result) -> dict[str, dict[str, Any]]:
    return {one["code"]: one for one in json.loads(done.stdout)["findings"] if one["code"].startswith("server.")}


def test_each_malformed_line_is_told_with_how_the_server_took_it(folder: Path) -> None:
    """CASES I03."""
    done = checked(folder, "--json", "--junit", str(folder / "report.xml"))
    assert done.exit_code == 0  # a warning: no studio sends such a line
    (shop,) = json.loads(done.stdout)["malformed"]
    passed = {one["frame"]: one["passed"] for one in shop["frames"]}
    assert len(passed) == shop["sent"] == len(FRAMES) >= 65
    assert not passed["byte 0xff"]
    assert not passed["cut json"]
    assert passed["call of nobody's function"]
    assert passed["unknown method"]
    assert shop["failed"] == list(passed.values()).count(False) > 20
    assert "SIGKILL" in shop["control"]  # that a server which is gone is seen to be
    assert {one["why"] for one in shop["frames"]} == {"", "The server's process ended with code 1."}
    found = findings(done)["server.frames"]
    assert (found["file"], found["line"], found["key"]) == ("oz0-plugin.yaml", 4, "shop")
    assert f"does not bear {shop['failed']} of {len(FRAMES)} malformed lines: empty line, spaces" in found["message"]

    suite = ElementTree.parse(folder / "report.xml").getroot()[1]
    assert (suite.attrib["tests"], suite.attrib["failures"]) == (str(len(FRAMES)), str(shop["failed"]))
    told = list(bearing_rules.told([Bearing("shop", (Borne("words", "It ended."), Borne("spaces")), control="c")]))
    assert told == ["shop: 1 of 2 malformed lines borne", "  FAILED  words: It ended."]


def test_a_server_that_goes_on_bears_all_of_them_and_one_that_is_stuck_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES I03."""
    served(folder, "--careful")
    done = checked(folder)
    assert f"shop: {len(FRAMES)} of {len(FRAMES)} malformed lines borne" in done.stdout
    assert "server." not in done.stdout
    monkeypatch.setattr(bearing, "ANSWERS_IN", 2.0)
    some = [frame for frame in FRAMES if frame.name in ("words", "unknown method")]
    found = bear(spec("--stuck"), some)
    assert [one.why for one in found.borne] == ["it did not answer the next request within 2 s", ""]
    assert found.control


def test_a_server_that_takes_no_name_in_meta_that_it_knows_not_is_told_before_it_refuses_a_call(folder: Path) -> None:
    """CASES R18."""
    served(folder, "--careful", "--strict")
    done = checked(folder, "--json")
    assert done.exit_code == 1
    found = findings(done)["server.meta"]
    assert found["severity"] == "error"
    assert "Unrecognized key(s) in object: oz0/idempotency_key" in found["message"]
    assert "let names in _meta pass" in found["fix"]


def test_what_cannot_be_started_again_is_told_and_passes_for_nothing() -> None:
    gone = bear(spec(program="/nowhere/at/all"), FRAMES[:1])
    assert (gone.borne, gone.control) == ((), "")
    assert gone.trouble == "its server could not be started: The server's process ended with code 127."


def test_no_line_asks_for_a_function_that_a_server_could_have() -> None:
    assert len({frame.name for frame in FRAMES}) == len(FRAMES)
    for frame in FRAMES:
        assert frame.data.endswith(b"\n")
        assert frame.data.count(b"\n") == 1
        if b"tools/call" in frame.data:
            params = json.loads(frame.data).get("params", {})
            assert params.get("name", 7) in (7, NOBODY)


def spec(*words: str, program: str = "") -> ServerSpec:
    return ServerSpec(
        tenant=ids.new(),
        tool_id=ids.new(),
        tool="shop",
        version="1",
        credential_version="",
        argv=(program or sys.executable, str(SERVER), *words),
        cwd=str(ROOT),
        startup=60,
        slots=1,
    )
