"""Lists of MCP servers as clients keep them: what is read from them, and what is refused with a way out (RULES C7)."""

import json
from typing import Any
from uuid import uuid4

import pytest

from base import canonical
from catalog.rules.manifest import tool_id_trouble
from catalog.rules.mcp_secrets import secret_in_address, secret_in_words
from catalog.rules.mcp_servers import BadServersFile, Server, id_of, manifest_of, read_servers
from catalog.rules.plugins import read_plugin
from catalog.rules.servers import ServerSpec

HERE = {"HOME": "/somebody", "TOKEN": "t0ken"}
VS_CODE = """{
  // the editor's own comments
  "inputs": [{"type": "promptString", "id": "key"}],
  "servers": {
    "GitHub": {"type": "http", "url": "https://a.example/mcp/", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
    "asks": {
      "command": "asker", /* here */ "args": ["--quiet"],
      "env": {"KEY": "${input:key}"},
    },
  },
}
"""


def read(entry: Any, name: str = "one") -> Server:
    [found] = read_servers("list.json", json.dumps({"mcpServers": {name: entry}}), HERE)
    return found


def told(entry: Any) -> str:
    return "\n".join(str(problem) for problem in read(entry).problems)


@pytest.mark.rule("C7")
def test_a_desktop_clients_list_gives_commands_with_their_variables() -> None:
    entry = {"command": "npx", "args": ["-y", "@example/files", "${userHome}/notes"], "env": {"API_KEY": "s3cret"}}
    found = read(entry, "My Files (home)")
    assert (found.id, found.argv) == ("my-files-home", ("npx", "-y", "@example/files", "/somebody/notes"))
    assert found.env == {"API_KEY": "s3cret"}
    assert not found.problems
    assert "s3cret" not in repr(found)


@pytest.mark.rule("C7")
def test_an_editors_list_with_comments_gives_addresses_with_their_headers_and_refuses_what_only_it_can_ask() -> None:
    github, asks = read_servers(".vscode/mcp.json", VS_CODE, HERE)
    assert (github.id, github.url) == ("github", "https://a.example/mcp/")
    assert github.headers == {"Authorization": "Bearer t0ken"}
    [problem] = asks.problems
    assert (problem.file, problem.line, problem.key) == (".vscode/mcp.json", 6, "asks.env.KEY")
    assert problem.message == "${input:key} is a value that an editor asks for"
    assert problem.fix == "write the value itself, or ${env:NAME} and set NAME while you import"


@pytest.mark.parametrize("shape", [{"mcpServers": {}}, {"servers": {}}, {"mcp": {"servers": {}}}])
def test_every_shape_of_the_list_is_known(shape: dict[str, Any]) -> None:
    assert read_servers("f", "\ufeff" + json.dumps(shape), HERE) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "f:1: is not JSON"),
        ("[]", "f: holds no list of MCP servers"),
        ('{"tools": {}}', 'fix: name a file with {"mcpServers"'),
        ('{"mcpServers": {"a": {},\n "a": {}}}', "f:2: a: is written twice"),
        ("[" * 100_000, "f:1: is nested deeper than 64 levels"),
    ],
)
def test_a_file_that_is_no_list_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(BadServersFile) as refused:
        read_servers("f", text, HERE)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"type": "sse", "url": "https://a.example/sse"}, "one.type: is an SSE server"),
        ({"url": "https://a.example/sse"}, "type http; many servers have it at /mcp instead of /sse"),
        ({"type": "ws", "url": "wss://a.example"}, "'ws' is no transport that the studio speaks"),
        ({"type": "http"}, "one.url: is missing"),
        ({}, "one.command: is missing"),
        ("npx", "is not an object"),
        ({"command": "a", "url": "https://a.example/"}, "has both a command and an address"),
        ({"command": "a", "disabled": True}, "is switched off in the file"),
        ({"command": "a", "envFile": ".env"}, "write what it holds under `env`"),
        ({"command": "npx -y a"}, "is more than a program"),
        ({"command": "a", "args": "-y"}, "is not a list of texts"),
        ({"command": "a", "args": [""]}, "is empty"),
        ({"command": "a", "args": ["${workspaceFolder}/b"]}, "write that folder's whole path"),
        ({"command": "a", "args": ["--word", "${env:TOKEN}"]}, "may be a secret, and this is kept in a file"),
        ({"command": "${env:TOKEN}"}, "one.command: ${env:TOKEN} may be a secret, and this is kept in a file"),
        ({"command": "/bin/a?token=ghp_abcdefghijklmnopqrstuv"}, "one.command: looks like it holds a secret"),
        ({"command": "a", "args": ["--api-key", "abc"]}, "one.args[1]: looks like a secret"),
        ({"command": "a", "env": {"A B": "c"}}, "is not the name of a variable"),
        ({"command": "a", "env": {"A": "${NOWHERE}"}}, "say NOWHERE=… oz0 import"),
        ({"command": "a", "env": {"A": ["b"]}}, "one.env.A: is not text"),
        ({"url": "https://a.example/mcp?api_key=abc"}, "holds what looks like a secret"),
        ({"url": "https://a.example/mcp", "headers": {"X-A": "1", "X-B": "2"}}, "a connection shows its server one"),
    ],
)
def test_what_cannot_be_imported_says_where_and_what_to_do(entry: Any, said: str) -> None:
    assert said in told(entry)
    assert "fix: " in told(entry)


def test_what_the_file_says_beside_the_server_is_named_as_left_behind() -> None:
    found = read({"command": "a", "alwaysAllow": ["b"], "timeout": 5, "env": {"N": 1, "gone": None}})
    assert found.notes == (
        "alwaysAllow is not taken over: the studio's policy says what may run unasked",
        "timeout is not taken over",
    )
    assert found.env == {"N": "1"}


def test_a_variable_the_program_fills_in_itself_stays_as_written() -> None:
    words = ["mcp-remote", "https://a.example/mcp", "--header", "Authorization:${AUTH}"]
    found = read({"command": "npx", "args": words, "env": {"AUTH": "Bearer s3cret"}})
    assert found.argv == ("npx", *words)
    assert not found.problems


def test_a_value_left_out_of_the_environment_may_have_another_in_its_place() -> None:
    assert read({"command": "a", "env": {"A": "${NOWHERE:-there}", "B": "${TOKEN:-there}"}}).env == {
        "A": "there",
        "B": "t0ken",
    }


def test_two_names_that_make_one_id_are_not_both_imported() -> None:
    both = {"Git Hub": {"command": "a"}, "git-hub": {"command": "b"}}
    first, second = read_servers("f", json.dumps({"mcpServers": both}), HERE)
    assert not first.problems
    assert "would be called git-hub, as Git Hub is" in str(second.problems[0])


@pytest.mark.rule("C1")
@pytest.mark.parametrize("name", ["oz", "a__b", "日本", "", "_-_", "x" * 300, "A.B/C", "a-_-b", "ünïcode", "-a_"])
def test_every_name_makes_an_id_that_a_tool_may_have(name: str) -> None:
    assert tool_id_trouble(id_of(name)) is None
    assert id_of(name) == id_of(name).lower()


def test_the_plugin_made_of_a_server_names_its_variables_and_never_holds_their_values() -> None:
    manifest = manifest_of(read({"command": "a", "args": ["ü", "#: {"], "env": {"B": "s3cret", "A": "x"}}))
    [tool] = read_plugin({"oz0-plugin.yaml": manifest}).tools
    assert (tool.id, tool.argv, tool.env) == ("one", ("a", "ü", "#: {"), ("A", "B"))
    assert b"s3cret" not in manifest
    assert canonical.parse(manifest)


@pytest.mark.parametrize(
    ("words", "at"),
    [
        (["--token", "abc"], [1]),
        (["--github-token=abc"], [0]),
        (["-e", "API_KEY=abc"], [1]),
        (["-e", "API_KEY"], []),
        (["--token-limit", "5"], []),
        (["--header", "X-Key: abc"], [1]),
        (["--header", "Authorization:${AUTH}"], []),
        (["postgres://me:pw@host/db"], [0]),
        (["https://a.example/mcp"], []),
        (["--api-key", "--verbose"], []),
        (["ghp_0123456789abcdefghij"], [0]),
        (["-y", "@scope/pat-server"], []),
    ],
)
def test_secrets_in_arguments_are_seen(words: list[str], at: list[int]) -> None:
    assert secret_in_words(words) == at


def test_secrets_in_addresses_are_seen() -> None:
    assert secret_in_address("https://a.example/mcp?token=abc")
    assert secret_in_address("https://me:pw@a.example/mcp")
    assert not secret_in_address("https://a.example/mcp?profile=work&token=")


@pytest.mark.rule("A14")
@pytest.mark.parametrize(
    ("name", "value", "ordinary"),
    [
        ("LEVEL", "info", True),
        ("PORT", "3000", True),
        ("NOTES", "/notes", True),
        ("MAPPING", "on", True),
        ("API_KEY", "info", False),
        ("PIN", "1234", False),
        ("PIN_CODE", "1234", False),
        ("LEVEL", "s3cret", False),
    ],
)
def test_only_what_is_surely_no_secret_is_left_in_what_servers_say(name: str, value: str, ordinary: bool) -> None:
    spec = ServerSpec(uuid4(), uuid4(), "a", "1", "", ("a",), "/", 1, 1, env={name: value, "TOKEN": "s3cret-value"})
    assert set(spec.secrets) == ({"s3cret-value"} if ordinary else {"s3cret-value", value})
