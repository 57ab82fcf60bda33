"""An existing list of MCP servers, as desktop and editor clients keep it, read into what a tool needs (RULES C7).

What a client's file can say is read here without looking at the machine: whether a program is there, is asked by
`catalog.operations.programs`.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from base import json_files
from catalog.rules.manifest import MANIFEST, RESERVED_TOOL, TOOL_ID_LONGEST, VARIABLE
from catalog.rules.mcp_secrets import secret_in_address, secret_in_words
from catalog.rules.placeholders import Unfilled, filled
from catalog.rules.problems import Problem

IMPORTED: Final = "imported"  # the version of a plugin that was made from such a file
TAKE_OUT: Final = "take it out of the list, or mend it"
_ROOMS: Final = (("mcpServers",), ("servers",), ("mcp", "servers"))
_ADDRESS: Final = ("url", "serverUrl", "httpUrl")
_KNOWN: Final = frozenset(
    {"command", "args", "env", "envFile", "cwd", "type", "transport", "headers", "disabled", *_ADDRESS}
)
_HTTP: Final = frozenset({"http", "streamable-http", "streamable_http", "streamablehttp"})
_POLICY: Final = frozenset({"alwaysAllow", "autoApprove", "trust", "includeTools", "excludeTools", "disabledTools"})
_SENT_ANYWAY: Final = frozenset({"accept", "content-type", "user-agent"})
MOST_VALUES: Final = 100_000


class BadServersFile(ValueError):
    """A file in which no list of servers can be read. `problem` says where and how to fix it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the file: a program (`argv`) or an address (`url`). `env` and `headers` hold secrets.

    `id` names the plugin, its tool and its connection. With `problems` it cannot be imported; `notes` say what of it
    is not taken over.
    """

    name: str
    line: int
    id: str
    argv: tuple[str, ...] = ()
    cwd: str = ""
    url: str = ""
    env: Mapping[str, str] = field(repr=False, default_factory=dict)
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_servers(file: str, text: str, environment: Mapping[str, str]) -> tuple[Server, ...]:
    """The servers in a client's file, in its order. `environment` fills `${env:NAME}`. Raises `BadServersFile`."""
    text = text.removeprefix("\ufeff")
    try:
        whole = json_files.load_text(json_files.without_comments(text), most_nodes=MOST_VALUES)
    except json_files.BadJson as error:
        said = "is written twice" if error.key else error.message
        raise BadServersFile(
            Problem(file, error.line, error.key, said, f"{error.fix}, or name another file")
        ) from error
    servers = _room(file, whole)
    found = [_Reader(file, name, _line(text, name), environment).read(entry) for name, entry in servers.items()]
    return tuple(_refuse_twins(file, found))


def manifest_of(server: Server) -> bytes:
    """`oz0-plugin.yaml` of a server's plugin. It names the variables and never holds their values."""
    tool: dict[str, Any] = {"id": server.id}
    if server.url:
        tool |= {"url": server.url, "connection": server.id}
    else:
        tool |= {"mcp": list(server.argv)} | ({"env": sorted(server.env)} if server.env else {})
    whole = {"name": server.id, "version": IMPORTED, "tools": [tool]}
    return (json.dumps(whole, ensure_ascii=False, indent=1) + "\n").encode()


def agent_files(name: str, tools: Sequence[str]) -> dict[str, bytes]:
    """The files of a plugin with one agent outside, which may call everything of these tools."""
    manifest = {"name": name, "version": IMPORTED, "agents": ["agents/"]}
    agent = {"name": name, "outside": True, "functions": [f"{tool}.*" for tool in tools]}
    whole = {MANIFEST: manifest, f"agents/{name}.yaml": agent}
    return {path: (json.dumps(one, ensure_ascii=False, indent=1) + "\n").encode() for path, one in whole.items()}


def id_of(name: str) -> str:
    """A tool's id made from a server's name (RULES C1): small letters, digits, `-` and single `_`, at most 48."""
    plain = re.sub(r"[^a-z0-9_]+", "-", name.lower())
    plain = re.sub(r"[-_]*-[-_]*", "-", re.sub(r"__+", "_", plain)).strip("-_")[:TOOL_ID_LONGEST].strip("-_")
    if plain and plain != RESERVED_TOOL:
        return plain
    return f"server-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


@dataclass(frozen=True, slots=True)
class _Reader:
    file: str
    name: str
    line: int
    environment: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def read(self, entry: Any) -> Server:
        found = Server(self.name, self.line, id_of(self.name))
        if not isinstance(entry, dict):
            self.note("", "is not an object", 'write {"command": …} or {"url": …}')
        elif entry.get("disabled") is True:
            self.note("disabled", "is switched off in the file", "take `disabled` out to import it")
        elif self.talks_http(entry):
            found = self.remote(found, entry)
        else:
            found = self.program(found, entry)
        if isinstance(entry, dict):
            self.left_behind(entry)
        return replace(found, notes=tuple(self.notes), problems=tuple(self.problems))

    def note(self, key: str, message: str, fix: str) -> None:
        path = f"{self.name}.{key}" if key else self.name
        self.problems.append(Problem(self.file, self.line, path, message, fix))

    def talks_http(self, entry: dict[str, Any]) -> bool:
        """Whether the server is an address; what can be neither a program nor an address is noted."""
        kind = entry.get("type", entry.get("transport"))
        word = kind.lower() if isinstance(kind, str) else "" if kind is None else "?"
        url = self.address(entry)
        if word == "sse" or (not word and re.search(r"/sse/?(\?|\Z)", url)):
            fix = "name its Streamable HTTP address with type http; many servers have it at /mcp instead of /sse"
            self.note("type" if word else "url", "is an SSE server, a transport that the studio does not speak", fix)
        elif word not in {"", "stdio", *_HTTP}:
            self.note("type", f"{kind!r} is no transport that the studio speaks", "stdio and http are")
        elif url and "command" in entry:
            self.note("", "has both a command and an address", "keep the one that is meant")
        elif word in _HTTP and not url:
            self.note("url", "is missing", "write the address of the server")
        elif word == "stdio" and url and "command" not in entry:
            self.note("type", "is stdio, and there is an address and no command", "write http")
        return bool(url) and "command" not in entry

    def address(self, entry: dict[str, Any]) -> str:
        return next((entry[key] for key in _ADDRESS if isinstance(entry.get(key), str)), "")

    def program(self, found: Server, entry: dict[str, Any]) -> Server:
        if not isinstance(entry.get("command"), str) or not entry["command"].strip():
            if not self.problems:
                self.note("command", "is missing", "write the program to run, or `url` for a remote server")
            return found
        env = self.texts("env", entry.get("env"))
        for name in [name for name in env if not VARIABLE.match(name)]:
            self.note(f"env.{name}", "is not the name of a variable", "letters, digits and _ make one")
        if "envFile" in entry:
            self.note("envFile", "is a file that the editor reads", "write what it holds under `env`")
        words = entry.get("args", [])
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            self.note("args", "is not a list of texts", 'write ["-y", "the-server"]')
            words = []
        if secret_in_words([entry["command"]]):
            fix = "give it to the program as a variable under `env`: those go into the vault"
            self.note("command", "looks like it holds a secret, and commands are kept in a file", fix)
        argv = (self.text("command", entry["command"], keep=env, shown=True), *self.arguments(words, env))
        if not words and " " in argv[0] and "/" not in argv[0]:
            self.note("command", f"{argv[0]!r} is more than a program", "write the words after the first under `args`")
        cwd = self.text("cwd", entry["cwd"]) if isinstance(entry.get("cwd"), str) else ""
        return replace(found, argv=argv, env=env, cwd=cwd)

    def arguments(self, words: list[str], env: Mapping[str, str]) -> list[str]:
        """Arguments are kept in files and shown on pages, so none may be a secret."""
        for at in secret_in_words(words):
            fix = "give it to the program as a variable under `env`: those go into the vault"
            self.note(f"args[{at}]", "looks like a secret, and arguments are kept in a file", fix)
        found = []
        for at, word in enumerate(words):
            if not word or "\0" in word:
                self.note(f"args[{at}]", "is empty or holds a zero byte, which cannot be kept", TAKE_OUT)
            found.append(self.text(f"args[{at}]", word, keep=env, shown=True))
        return found

    def remote(self, found: Server, entry: dict[str, Any]) -> Server:
        url = self.text("url", self.address(entry), shown=True)
        if secret_in_address(url):
            fix = "give it as a header under `headers`: its value goes into the vault"
            self.note("url", "holds what looks like a secret, and addresses are shown on pages", fix)
        headers = self.texts("headers", entry.get("headers"))
        for name in [name for name in headers if name.lower() in _SENT_ANYWAY]:
            del headers[name]
            self.notes.append(f"header {name} is the studio's own")
        if len(headers) > 1:
            fix = "keep the one that lets you in"
            self.note("headers", f"holds {len(headers)}, and a connection shows its server one", fix)
        return replace(found, url=url, headers=headers)

    def texts(self, key: str, value: Any) -> dict[str, str]:
        """A map of texts whose values may be secrets."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.note(key, "is not an object", 'write {"NAME": "value"}')
            return {}
        found = {}
        for name, one in value.items():
            if one is None:
                continue
            if isinstance(one, dict | list):
                self.note(f"{key}.{name}", "is not text", "write it in quotes")
                continue
            plain = one if isinstance(one, str) else json.dumps(one)
            found[name] = self.text(f"{key}.{name}", plain)
        return found

    def text(self, key: str, text: str, *, keep: Mapping[str, str] | None = None, shown: bool = False) -> str:
        """`text` with its placeholders filled; what is `shown` later gets no variable's value."""
        try:
            return filled(text, self.environment, keep=keep or {}, shown=shown)
        except Unfilled as error:
            self.note(key, str(error), error.fix)
            return text

    def left_behind(self, entry: dict[str, Any]) -> None:
        for key in entry:
            if key in _POLICY:
                self.notes.append(f"{key} is not taken over: the studio's policy says what may run unasked")
            elif key not in _KNOWN:
                self.notes.append(f"{key} is not taken over")


def _refuse_twins(file: str, found: list[Server]) -> list[Server]:
    """Of two servers whose names make one id, the later is not imported."""
    first: dict[str, str] = {}
    kept = []
    for server in found:
        other = first.setdefault(server.id, server.name)
        if other != server.name:
            said = f"would be called {server.id}, as {other} is"
            problem = Problem(file, server.line, server.name, said, "rename one of them")
            server = replace(server, problems=(*server.problems, problem))
        kept.append(server)
    return kept


def _room(file: str, whole: Any) -> dict[str, Any]:
    for path in _ROOMS:
        inner = whole
        for key in path:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            return inner
    fix = f'name a file with {{"mcpServers": {{…}}}} or {{"servers": {{…}}}}; a plugin of your own has {MANIFEST}'
    raise BadServersFile(Problem(file, 0, "", "holds no list of MCP servers", fix))


def _line(text: str, key: str) -> int:
    found = re.search(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)
    return text.count("\n", 0, found.start()) + 1 if found else 0
