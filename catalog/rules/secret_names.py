"""What the vault calls the secrets of a connection, and the variables of a tool's program."""

from uuid import UUID


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
