"""Values that say which MCP server to open and what its listing was."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from catalog.rules.mcp_secrets import is_ordinary
from catalog.rules.sandbox import Sandbox

# What of a node's own environment a plugin's server gets.
HANDED_ON: Final = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
SECRET: Final = 4  # characters from which on a value of a server's environment counts as a secret


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote server as one connection reaches it. `headers` hold its live credential: never shown, never logged.

    `allowed` are the `host:port` entries that may be reached although they are not public. `trouble` is one sentence
    on why it cannot be reached at all, empty when it can be tried.
    """

    connection: UUID
    name: str
    url: str
    allowed: tuple[str, ...] = ()
    trouble: str = ""
    headers: Mapping[str, str] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A server for one tenant: a program to run, or a `remote` one. Sessions are shared by equal `key` and replaced
    when a part of it changes.

    A program in a `sandbox` is one `job`'s own; without a job it is there for its listing. `slots` are the tool's
    calls at a time on one node. `startup` is in seconds; `env` may hold live credentials and is never shown or logged.
    `trouble` is one sentence on why the program cannot be started at all, empty when it can be tried.
    """

    tenant: UUID
    tool_id: UUID
    tool: str
    version: str  # of the plugin's files, and which generation of servers they run in
    credential_version: str
    argv: tuple[str, ...]
    cwd: str
    startup: float
    slots: int
    protocol: str = ""  # the protocol version measured before, to open the same generation; empty: ask the server
    remote: Remote | None = None
    sandbox: Sandbox | None = None
    job: UUID | None = None
    trouble: str = ""
    env: Mapping[str, str] = field(repr=False, compare=False, default_factory=dict)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be kept or shown of anything the server says: its credential, and its environment's values.

        Settings that are surely no secrets are left out: in a log they would stand for ordinary words.
        """
        credentials = [] if self.remote is None else [*self.remote.headers.values()]
        bare = [value.partition(" ")[2] for value in credentials]
        given = [value for name, value in self.env.items() if not is_ordinary(name, value)]
        return tuple(value for value in (*credentials, *bare, *given) if len(value) >= SECRET)

    @property
    def key(self) -> "Key":
        """What a session may be shared by. The listing's digest is checked for each call on top of it."""
        return (self.tenant, self.tool_id, self.version, self.credential_version, self.job)

    @property
    def calls_at_once(self) -> int:
        """How many calls one server of it gets at a time: a job's own server gets one."""
        return self.slots if self.sandbox is None else 1


type Key = tuple[UUID, UUID, str, str, UUID | None]


@dataclass(frozen=True, slots=True)
class ListedFunction:
    """One entry of a server's own listing. `digest` covers everything the model or a policy can see (RULES C2)."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    annotations: Mapping[str, Any]
    meta: Mapping[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class MeasuredListing:
    """A listing read from the server itself, all pages. `digest` ignores the order of entries (RULES C2, C3).

    `problems` says, one sentence each, which entries were left out because they cannot be called by name.
    `can_cancel` and `can_report` are what its connection can do (RULES C5). `isolation` is what a sandboxed server
    was kept apart by, a word of `base.sandbox`; empty for every other.
    """

    digest: str
    protocol: str
    server_name: str
    server_version: str
    functions: tuple[ListedFunction, ...]
    problems: tuple[str, ...] = ()
    can_cancel: bool = True
    can_report: bool = True
    isolation: str = ""
