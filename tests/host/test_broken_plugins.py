"""Plugins whose programs are missing, print rubbish or exit leave the others of the catalog at work, and are told."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from django.conf import LazySettings
from django.db import connection

from base import db
from catalog.models import Listing, Tool
from catalog.operations import plugins
from catalog.queries.plugin_pages import plugin_page, plugins_page
from catalog.rules.problems import BadPlugin
from jobs.operations.removing import remove
from jobs.tasks.host import Host
from tenants.rules.who import SYSTEM
from tests.builders import a_tenant
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("database")
PROGRAMS = {
    "missing": None,
    "rubbish": "print('}{ not a protocol', flush=True)\nimport time; time.sleep(60)\n",
    "exits": "raise SystemExit('no ledger today')\n",
    "good": (
        "from mcp.server import MCPServer\nserver = MCPServer('good')\n\n\n@server.tool()\ndef look() -> str:\n"
        "    '''Look.'''\n    return 'x'\n\n\nserver.run('stdio')\n"
    ),
}


@pytest.fixture
def host(tmp_path: Path, settings: LazySettings) -> Iterator[Host]:
    """A running node with a state folder of the test's own."""
    settings.OZ0_HOME = tmp_path / "home"
    node = Host(name="here")
    node.start()
    yield node
    node.stop(grace=2)
    connection.close()


def folder_of(tmp_path: Path, name: str, program: str | None) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    command = "[python, server.py]" if program is not None else "[no-such-program]"
    (folder / "oz0-plugin.yaml").write_text(
        f'name: {name}\nversion: "1"\ntools:\n  - id: {name}\n    mcp: {command}\n    startup: 20\n'
    )
    if program is not None:
        (folder / "server.py").write_text(program)
    return folder


def test_what_is_wrong_with_one_plugin_is_told_on_its_page_and_the_others_are_listed(
    host: Host, tmp_path: Path
) -> None:
    """CASES I01, I02: a program that is not on the path, and one whose output is no protocol."""
    tenant = a_tenant()
    for name, program in PROGRAMS.items():
        plugins.register(tenant=tenant, folder=folder_of(tmp_path, name, program), home=tmp_path / "home", actor=SYSTEM)
    for wrong, said in (
        ("verison: 1\n", "not a known key"),
        ("name: again\nname: twice\n", "here twice"),
        ("name: [a]\n", "is not a name"),
        ('name: other\nversion: "1"\ntools: [{id: good, mcp: [x]}]\n', "plugin good has tool good already"),
    ):
        (tmp_path / "good" / "oz0-plugin.yaml").write_text(wrong)
        with pytest.raises(BadPlugin, match=said):
            plugins.register(tenant=tenant, folder=tmp_path / "good", home=tmp_path / "home", actor=SYSTEM)

    def told() -> dict[str, str]:
        with db.read(tenant):
            return dict(Tool.objects.exclude(down_reason="").values_list("slug", "down_reason"))

    def listed() -> bool:
        with db.read(tenant):
            return Listing.objects.filter(tool__slug="good", current=True).exists()

    until(listed, "the good one was not listed", seconds=90)
    until(lambda: len(told()) == 3, "what is wrong with the others was not told", seconds=90)
    found = told()
    assert "no-such-program" in found["missing"]
    assert "ended with code 1" in found["exits"]
    assert found["rubbish"]
    standing = {row.name: row.standing for row in plugins_page(tenant).rows}
    assert standing == {"good": "here", "missing": "trouble", "rubbish": "trouble", "exits": "trouble"}
    page = plugin_page(tenant, "exits")
    assert page is not None
    assert "ended with code 1" in page.down[0].down_reason


def test_the_server_of_a_removed_plugin_is_gone_within_seconds_with_what_it_was_given(
    host: Host, tmp_path: Path
) -> None:
    tenant = a_tenant()
    for name in ("good", "stays"):
        program = (PROGRAMS["good"] or "").replace("good", name)
        plugins.register(tenant=tenant, folder=folder_of(tmp_path, name, program), home=tmp_path / "home", actor=SYSTEM)
    servers = {}

    def both_up() -> bool:
        servers.update({one.tool: one.pid for one in host.node.servers() if one.pid})
        return set(servers) == {"good", "stays"}

    until(both_up, "the servers never came up", seconds=90)
    assert remove(tenant=tenant, plugin="good", actor=SYSTEM) is not None
    until(lambda: [one.tool for one in host.node.servers()] == ["stays"], "the idle server stayed", seconds=30)
    until(lambda: not psutil.pid_exists(servers["good"] or 0), "its process stayed", seconds=30)
    assert psutil.pid_exists(servers["stays"] or 0), "the control"
