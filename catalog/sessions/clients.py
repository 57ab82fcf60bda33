"""One HTTP client per server and credential, shared by all sessions that need it and closed with the last of them."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from base import outbound
from base.addresses import read_url
from catalog.rules.servers import ServerSpec

type Key = tuple[UUID, UUID, str, str]


@dataclass(slots=True)
class _Shared:
    client: outbound.Client
    users: int = 0


class Clients:
    """The clients of one node; lives in its loop."""

    def __init__(self) -> None:
        self._shared: Final[dict[Key, _Shared]] = {}

    def take(self, spec: ServerSpec) -> outbound.Client:
        """The client for a remote server, to be given back with `give_back`. Raises `addresses.Refused`."""
        remote = spec.remote
        if remote is None:
            raise ValueError(f"{spec.tool} is no remote server")
        shared = self._shared.get(_key(spec))
        if shared is None:
            shared = _Shared(outbound.Client(allowed=remote.allowed, headers=remote.headers))
            self._shared[_key(spec)] = shared
        shared.users += 1
        return shared.client

    async def give_back(self, spec: ServerSpec) -> None:
        """A session has closed."""
        shared = self._shared[_key(spec)]
        shared.users -= 1
        if shared.users == 0:
            del self._shared[_key(spec)]
            await shared.client.close()


def _key(spec: ServerSpec) -> Key:
    assert spec.remote is not None  # noqa: S101 - `take` has looked
    return (spec.tenant, spec.remote.connection, read_url(spec.remote.url).origin, spec.credential_version)
