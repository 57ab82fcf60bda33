"""`oz0 import`, in this process, on the test's own database (RULES C7)."""

import json
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from django.conf import settings

from base import db, ids
from catalog.models import Connection, Credential, PluginVersion, Stage, Tool, Transport
from catalog.operations import connections, plugins
from catalog.queries.functions import current_agent
from catalog.rules.kept_agents import from_json
from catalog.sessions import NotUp, list_once
from jobs.models import Starter
from jobs.operations.intake import CannotStart, start_job
from jobs.operations.servers import server_of
from studio.cli.import_ import import_
from tenants.models import AuditEntry, Secret
from tenants.operations import vault
from tenants.operations.sign_in import first_tenant
from tenants.rules.who import SYSTEM
from tests.builders import a_tool

pytestmark = pytest.mark.usefixtures("database")
SERVERS = Path(__file__).parents[1] / "servers"
PROGRAM = f"""
import os, runpy, sys
assert os.environ["GREETING"] == "s3cret-value", "no greeting"
sys.argv = ["behaved"]
runpy.run_path({str(SERVERS / "behaved.py")!r}, run_name="__main__")
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setattr(settings, "OZ0_HOME", tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A server that starts only with its variable."""
    file = tmp_path / "greeter.py"
    file.write_text(PROGRAM)
    return file


def listed(tmp_path: Path, **servers: Any) -> Path:
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"mcpServers": servers}, indent=1))
    return file


def oz0_import(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(import_, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def tenant() -> UUID:
    return first_tenant(ids.new())


def tool(slug: str) -> Tool:
    return Tool.objects.select_related("plugin_version").get(slug=slug, plugin_version__stage=Stage.CURRENT)


def everything_kept(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


@pytest.mark.rule("C7")
@pytest.mark.rule("A12")
def test_a_program_is_in_the_catalog_after_one_command_and_starts_with_its_secret_from_the_vault(
    tmp_path: Path, home: Path, program: Path
) -> None:
    entry = {"command": sys.executable, "args": [str(program)], "env": {"GREETING": "s3cret-value", "LEDGER": "/x"}}
    done = oz0_import(listed(tmp_path, Greeter=entry))
    assert done.output.splitlines()[0] == f"added Greeter as greeter: {sys.executable}; GREETING, LEDGER in the vault"
    with db.read(tenant()):
        spec = server_of(tool("greeter"))
        assert PluginVersion.objects.get().version == "imported"
        noted = str(list(AuditEntry.objects.values_list("verb", "actor", "how", "after")))
        assert tool("greeter").measure_due_at is not None
    assert {"ping", "slow"} <= {function.name for function in list_once(spec).functions}
    assert "variables.entered" in noted
    assert "oz0 import" in noted
    assert "s3cret-value" not in noted + done.output + repr(spec)
    assert b"s3cret-value" not in everything_kept(home)


@pytest.mark.rule("C7")
def test_a_remote_server_gets_a_connection_with_its_credential_and_only_the_way_in_that_the_list_names(
    tmp_path: Path,
) -> None:
    there = {"url": "https://mcp.example.org/mcp", "headers": {"authorization": "Bearer s3cret-value"}}
    here = {"type": "http", "url": "http://127.0.0.1:8801/mcp", "headers": {"X-Api-Key": "other-value"}}
    done = oz0_import(listed(tmp_path, there=there, here=here))
    assert "added here: http://127.0.0.1:8801/mcp; header X-Api-Key in the vault; allowed to reach 127.0.0.1:8801" in (
        done.output
    )
    with db.read(tenant()):
        rows = {row.name: row for row in Connection.objects.all()}
        assert {name: (row.credential, row.header, row.allowed) for name, row in rows.items()} == {
            "there": ("bearer", "", []),
            "here": ("header", "X-Api-Key", ["127.0.0.1:8801"]),
        }
        assert tool("there").transport == Transport.URL
        remote = server_of(tool("there")).remote
        assert remote is not None
        assert dict(remote.headers) == {"Authorization": "Bearer s3cret-value"}
    assert "s3cret-value" not in done.output


@pytest.mark.rule("C7")
def test_importing_twice_changes_nothing_and_a_changed_entry_changes_only_what_is_other(
    tmp_path: Path, program: Path
) -> None:
    entry = {"command": sys.executable, "args": [str(program)], "env": {"GREETING": "s3cret-value"}}
    remote = {"url": "https://mcp.example.org/mcp", "headers": {"X-Api-Key": "one"}}

    def state() -> Any:
        with db.read(tenant()):
            return (
                sorted(Secret.objects.values_list("name", "version")),
                sorted(PluginVersion.objects.values_list("digest", "stage")),
                Connection.objects.get().credential_version,
                AuditEntry.objects.exclude(verb="tool.listed_anew").count(),
            )

    oz0_import(listed(tmp_path, a=entry, b=remote))
    before = state()
    assert oz0_import(listed(tmp_path, a=entry, b=remote)).output.splitlines()[0].startswith("kept a")
    assert state() == before
    with db.read(tenant()):
        assert AuditEntry.objects.filter(verb="tool.listed_anew").count() == 2  # its code may be another by now
        version = server_of(tool("a")).credential_version
    entry["env"]["GREETING"] = "another"
    done = oz0_import(listed(tmp_path, a=entry, b=remote)).output
    assert [line.split(":")[0] for line in done.splitlines()[:2]] == ["changed a", "kept b"]
    with db.read(tenant()):
        assert server_of(tool("a")).credential_version != version  # so running servers are replaced
        assert PluginVersion.objects.filter(plugin__name="a").count() == 1
    del entry["env"]
    oz0_import(listed(tmp_path, a=entry, b=remote))
    with db.read(tenant()):
        assert [name for name in Secret.objects.values_list("name", flat=True) if "plugin" in name] == []
        assert server_of(tool("a")).env == {}


@pytest.mark.rule("A14")
def test_ordinary_values_are_not_taken_out_of_what_servers_say_and_secrets_are(tmp_path: Path, program: Path) -> None:
    env = {"GREETING": "s3cret-value", "LEVEL": "info", "PORT": "3000", "NOTES": "/notes", "API_KEY": "info"}
    entry = {"command": sys.executable, "args": [str(program)], "env": env}
    oz0_import(listed(tmp_path, a=entry))
    mine = tenant()
    with db.read(mine):
        assert sorted(vault.every(mine)) == ["info", "s3cret-value"]
        assert dict(server_of(tool("a")).env) == env
    entry["env"] = env | {"LEVEL": "s3cret level"}
    oz0_import(listed(tmp_path, a=entry))
    with db.read(mine):
        assert sorted(vault.every(mine)) == ["info", "s3cret level", "s3cret-value"]
        assert server_of(tool("a")).env["LEVEL"] == "s3cret level"
    assert oz0_import(listed(tmp_path, a=entry)).output.startswith("kept a")


def test_what_an_admin_added_to_an_imported_connection_stays(tmp_path: Path) -> None:
    file = listed(tmp_path, b={"url": "https://mcp.example.org/mcp"})
    oz0_import(file)
    given = connections.Given(Credential.BEARER, "entered-by-hand")
    change = {"url": "https://mcp.example.org/mcp", "allowed": ["10.0.0.7:443"], "given": given, "actor": SYSTEM}
    connections.change(tenant=tenant(), name="b", **change)
    assert oz0_import(file).output.startswith("kept b")
    with db.read(tenant()):
        row = Connection.objects.get()
        assert (row.allowed, vault.get(row.tenant_id, connections.secret_name(row))) == (
            ["10.0.0.7:443"],
            "entered-by-hand",
        )


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path, home: Path, program: Path) -> None:
    entry = {"command": sys.executable, "args": [str(program)], "env": {"GREETING": "s3cret-value"}}
    done = oz0_import(listed(tmp_path, a=entry, b={"url": "https://mcp.example.org/mcp"}), "--dry-run")
    assert [line.split(":")[0] for line in done.output.splitlines()] == ["would add a", "would add b"]
    assert "s3cret-value" not in done.output
    with db.read(tenant()):
        assert (Tool.objects.count(), Secret.objects.count(), Connection.objects.count()) == (0, 0, 0)
    assert not home.exists()


def test_a_program_that_is_not_there_is_named_with_the_path_that_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES I01."""
    monkeypatch.setenv("PATH", "/nowhere:/else")
    done = oz0_import(listed(tmp_path, a={"command": "uvx", "args": ["it"]}), code=1)
    assert done.stdout == "left out a\n"
    assert done.stderr.splitlines() == [
        "  list.json:3: a.command: there is no program uvx on the path /nowhere:/else",
        "  fix: install it, write its whole path, or give the server a PATH under `env`",
    ]


@pytest.mark.parametrize(
    ("entry", "key", "fix"),
    [
        ({"command": "./run.sh"}, "a.command", "write the whole path"),
        ({"command": "sh", "args": ["greeter.py"]}, "a.args[0]", "write {folder}/greeter.py"),
        ({"command": "sh", "args": ["./greeter.py"]}, "a.args[0]", "write {folder}/greeter.py"),
        ({"command": "sh", "args": ["build/index.js"]}, "a.args[0]", "write the whole path"),
        ({"command": "sh", "args": ["up.py"], "cwd": "{folder}/sub"}, "a.args[0]", "write {folder}/sub/up.py"),
    ],
)
def test_a_relative_path_is_refused_with_the_whole_one(
    tmp_path: Path, program: Path, entry: dict[str, Any], key: str, fix: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up.py").touch()
    entry = json.loads(json.dumps(entry).replace("{folder}", str(tmp_path)))
    done = oz0_import(listed(tmp_path, a=entry), "--json", code=1)
    [server] = json.loads(done.stdout)["servers"]
    assert [(at["key"], at["fix"]) for at in server["problems"]] == [(key, fix.format(folder=tmp_path))]


def test_one_bad_entry_costs_only_itself_and_json_tells_of_each(tmp_path: Path, program: Path) -> None:
    good = {"command": sys.executable, "args": [str(program)], "env": {"GREETING": "s3cret-value"}, "autoApprove": []}
    bad = {"type": "sse", "url": "https://mcp.example.org/sse"}
    odd = {"url": "https://mcp.example.org/mcp", "headers": {"Host": "x"}}
    done = oz0_import(listed(tmp_path, bad=bad, good=good, odd=odd), "--json", code=1)
    told = {server["name"]: server for server in json.loads(done.stdout)["servers"]}
    assert {name: server["done"] for name, server in told.items()} == {
        "bad": "left out",
        "good": "added",
        "odd": "left out",
    }
    assert told["good"]["variables"] == ["GREETING"]
    assert told["good"]["notes"] == ["autoApprove is not taken over: the studio's policy says what may run unasked"]
    assert told["odd"]["problems"][0]["key"] == "odd.headers"
    assert "s3cret-value" not in done.stdout


def test_what_was_made_another_way_is_never_replaced(tmp_path: Path, program: Path) -> None:
    a_tool(tenant(), (), slug="shop")
    with db.write(tenant()):
        Tool.objects.update(slug="taken")
    connections.make(
        tenant=tenant(),
        name="mine",
        url="https://mine.example.org/mcp",
        allowed=[],
        given=connections.Given(),
        actor=SYSTEM,
    )
    there = {"command": sys.executable}
    done = oz0_import(
        listed(tmp_path, taken=there, shop=there, mine={"url": "https://mcp.example.org/mcp"}), "--json", code=1
    )
    said = [server["problems"][0]["message"] for server in json.loads(done.stdout)["servers"]]
    assert said == [
        "plugin shop has tool taken already",
        "there is a plugin shop that was not imported",
        "there is a connection mine that was not imported",
    ]


@pytest.mark.parametrize("headers", [{}, {"X-Api-Key": "one"}])
def test_an_import_that_was_cut_off_after_its_connection_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    file = listed(tmp_path, far={"url": "https://mcp.example.org/mcp", "headers": headers})

    def cut_off(**_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(plugins, "register", cut_off)
        assert CliRunner().invoke(import_, [str(file)]).exit_code == 130
    with db.read(tenant()):
        assert Connection.objects.get().name == "far"
        assert not PluginVersion.objects.exists()
    assert oz0_import(file).output.startswith("added far")


def test_a_variable_that_the_vault_lost_is_said_and_nothing_is_started_without_it(
    tmp_path: Path, program: Path
) -> None:
    entry = {"command": sys.executable, "args": [str(program)], "env": {"GREETING": "s3cret-value"}}
    oz0_import(listed(tmp_path, a=entry))
    with db.write(tenant()):
        vault.drop_all("plugin a tool a variable ")
    with db.read(tenant()):
        spec = server_of(tool("a"))
    with pytest.raises(NotUp, match=r"no usable value for the variable GREETING .* an admin enters it at"):
        list_once(spec)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "list.json:1: is not JSON"), (b"\xff", "is not UTF-8 text"), (None, "No such file or directory")],
)
def test_a_file_that_cannot_be_read_ends_with_three_and_a_sentence(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "list.json"
    if content is not None:
        file.write_bytes(content)
    assert said in oz0_import(file, code=3).stderr
    assert said in json.loads(oz0_import(file, "--json", code=3).stdout)["error"]


def test_an_agent_outside_may_call_all_that_was_imported_and_is_connected_but_never_started(
    tmp_path: Path, program: Path
) -> None:
    server = {"command": sys.executable, "args": [str(program)], "env": {"GREETING": "s3cret-value"}}
    file = listed(tmp_path, greeter=server, other=server)
    said = oz0_import(file, "--agent", "editor").output
    assert "connect a client with `oz0 connect CLIENT editor`" in said
    tenant = first_tenant(ids.new())
    with db.read(tenant):
        spec = from_json(current_agent("editor").definition)  # type: ignore[union-attr]
    assert (spec.outside, spec.functions, spec.model) == (True, ("greeter.*", "other.*"), "")
    oz0_import(file, "--agent", "editor")
    with db.read(tenant):
        assert PluginVersion.objects.filter(plugin__name="editor").count() == 1
    with pytest.raises(CannotStart, match="it runs elsewhere and calls its functions here by a token"):
        start_job(tenant=tenant, agent="editor", given={}, starter=Starter.PERSON, person=None)
    refused = oz0_import(file, "--agent", "greeter", code=3).output
    assert "there is a plugin greeter that is no such agent" in refused
    oz0_import(file, "--agent", "no name", code=3)
    with db.read(tenant):
        assert Tool.objects.filter(plugin_version__plugin__name="greeter").exists()
        assert current_agent("greeter") is None
