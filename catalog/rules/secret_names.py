"""What the vault calls the secrets of a connection, and the variables of a tool's program; and reading it back."""

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

OF_ALL: Final = "variable "
"""How the name begins of a variable that every tool gets which has none of its own of that name."""
_OF_TOOL: Final = re.compile(r"plugin (.+) tool (\S+) variable (\S+)\Z")
_OF_CONNECTION: Final = re.compile(r"connection ([0-9a-f-]{36})(?: (refresh|client|begun .*))?\Z")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, and the tool whose it is; of every tool when that is empty."""

    variable: str
    tool: str = ""
    plugin: str = ""


def read_name(name: str) -> Variable | None:
    """What variable the vault calls so; None when it is none."""
    if found := _OF_TOOL.match(name):
        return Variable(found[3], found[2], found[1])
    return Variable(name.removeprefix(OF_ALL)) if name.startswith(OF_ALL) else None


def read_connection(name: str) -> tuple[UUID, str] | None:
    """Which connection's it is, and what of it: "" is what calls carry, else refresh, client or begun."""
    found = _OF_CONNECTION.match(name)
    return (UUID(found[1]), (found[2] or "").partition(" ")[0]) if found else None


def access_name(connection: UUID) -> str:
    """What the vault calls the token that calls carry; also a connection's bearer or header value."""
    return f"connection {connection}"


def refresh_name(connection: UUID) -> str:
    """What the vault calls the refresh token."""
    return f"connection {connection} refresh"


def client_name(connection: UUID) -> str:
    """What the vault calls the client's secret."""
    return f"connection {connection} client"


def begun_name(connection: UUID, nonce_digest: str) -> str:
    """What the vault calls what is kept of a sign-in while its person is at the provider."""
    return f"connection {connection} begun {nonce_digest[:32]}"


def variables_of(plugin: str, tool: str) -> str:
    """How the names of a tool's variables begin. Another plugin's tool of that id has names of its own."""
    return f"plugin {plugin} tool {tool} variable "
