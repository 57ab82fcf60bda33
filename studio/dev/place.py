"""Where the studio of one plugin's author keeps its state, and what of the terminal's environment it does not take."""

import hashlib
import os
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from studio.embedded.failure import CannotStart
from studio.embedded.place import place_of
from studio.supervisor.one_at_a_time import LOCK, Lock
from studio.supervisor.studio import LEFTOVERS

STATE: Final = ".oz0-dev"
FIRST_PORT: Final = 8000
PORTS: Final = 100
# These name the services and the secret of another studio, which this one must not touch.
ANOTHERS: Final = frozenset(
    {
        *("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "BROKER_URL", "OZ0_SECRET_KEY", "OZ0_OLD_SECRET_KEYS"),
        *("OZ0_AS_OWNER", "OZ0_ADMIN_DATABASE_URL", "OZ0_HOME", "OZ0_URL"),
    }
)


def state_of(folder: Path, environ: Mapping[str, str]) -> Path:
    """The state folder of the plugin in `folder`: `.oz0-dev` in it, or with `OZ0_HOME` one of its own below `dev/`."""
    folder = folder.resolve()
    if outer := environ.get("OZ0_HOME"):
        digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
        return Path(outer).absolute() / "dev" / f"{folder.name}-{digest}"
    return folder / STATE


def own(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what belongs to another studio."""
    return {name: value for name, value in environ.items() if name not in ANOTHERS}


def forget(state: Path) -> None:
    """Empty a state folder, with its database. Raises `CannotStart`, also while a studio is up in it."""
    if not state.is_dir():
        return
    lock = Lock(state, f"process {os.getpid()}, which empties it")
    try:
        if lock.left_behind:
            time.sleep(LEFTOVERS)  # its database may still be ending
        place = place_of(state)
        place.remove(place.data / "pg", *place.sockets.iterdir())
        for inside in state.iterdir():
            if inside.name != LOCK:  # which we hold: nobody may start here meanwhile
                shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
    except OSError as error:
        raise CannotStart(f"{error.filename or state} cannot be deleted: {error.strerror}") from error
    finally:
        lock.release()


def free_port() -> int:
    """The first port from 8000 on that nobody listens at. Raises `CannotStart`."""
    for port in range(FIRST_PORT, FIRST_PORT + PORTS):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise CannotStart(f"every port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} is taken: name one, with --port")
