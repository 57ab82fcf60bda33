"""What keeps a sandboxed program apart on this machine: measured once by running one, and the command that does it.

A normal user has bubblewrap where it is installed and works, else namespaces of our own making (`base/jail.py`); root
has the latter, which give root up. A machine that allows neither has nothing, and the studio says so.
"""

import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

JAIL: Final = Path(__file__).with_name("jail.py")
BRIDGE: Final = Path(__file__).with_name("bridge.py")
NOBODY: Final = 65534
MIB: Final = 2**20
PLACE_SIZE: Final = 256 * MIB  # of /tmp and of /scratch, each
PROBE_LIMIT: Final = 15.0  # seconds
HANDED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "TZ")
# Of /etc only what libraries need to find users, hosts and certificates
ETC: Final = (
    "alternatives",
    "ca-certificates",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
    "pki",
    "resolv.conf",
    "ssl",
)
SYSTEM: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# What must be true in there for a machine to count as one that keeps programs apart
_PROBE: Final = """
import os, socket, sys
assert not os.path.exists(sys.argv[1]), "a file outside can be seen"
assert {name for _, name in socket.if_nameindex()} <= {"lo"}, "there is a network"
assert all(not name.isdigit() or int(name) < 10 for name in os.listdir("/proc")), "other processes can be seen"
open("/scratch/a", "w").close(), open("/tmp/a", "w").close()
for place in ("/a", "/usr/a", "/etc/a", sys.argv[2] + "/a"):
    try:
        open(place, "w")
    except OSError:
        continue
    raise AssertionError(place + " can be written")
"""


class Isolation(StrEnum):
    """What keeps a sandboxed program apart."""

    BUBBLEWRAP = "bubblewrap"
    NAMESPACES = "namespaces"
    PROCESS_GROUP = "process_group"  # nothing but its limits: files and network are open to it


@dataclass(frozen=True, slots=True)
class Room:
    """`folder` is what it works in and may read, `memory` the MiB that each of its processes may write to.

    `way_out` is a Unix socket, and the port of the room's own loopback that leads there (`base/bridge.py`).
    """

    folder: str
    network: bool = False
    memory: int = 1024
    way_out: tuple[str, int] | None = None


@cache
def measured() -> Isolation:
    """What this machine can do, found out by doing it once; takes some tenths of a second the first time."""
    for isolation in _candidates():
        trouble = _trouble(isolation)
        if not trouble:
            return isolation
        log.warning("%s cannot keep sandboxed programs apart here: %s", isolation, trouble)
    return Isolation.PROCESS_GROUP


def command(argv: Sequence[str], room: Room, isolation: Isolation) -> list[str]:
    """The command line that runs `argv`, whose first word is a path, in its room."""
    limits = [sys.executable, "-I", "-S", str(JAIL), "--memory", str(room.memory * MIB)]
    if isolation is Isolation.PROCESS_GROUP:
        return [*limits, "--limits-only", "--", *argv]
    more: list[str] = []
    if room.way_out is not None:
        socket, port = room.way_out
        more = [str(BRIDGE), socket]
        bridge = ["--socket", socket, "--port", str(port), "--", *argv]
        argv, program = [sys.executable, "-I", "-S", str(BRIDGE), *bridge], argv[0]
    else:
        program = argv[0]
    shown, links = list(_shown(program, room.folder, more)), _links()
    if isolation is Isolation.BUBBLEWRAP:
        return [*limits, "--limits-only", "--", *_bubblewrap(room, shown, links), "--", *argv]
    words = [*limits, "--work-in", room.folder, "--size", str(PLACE_SIZE)]
    for path in shown:
        words += ["--show", path]
    for path, target in links.items():
        words += ["--link", f"{path}={target}"]
    if room.network:
        words.append("--network")
    if os.geteuid() == 0:
        words += ["--uid", str(NOBODY), "--gid", str(NOBODY)]
    return [*words, "--", *argv]


def environment(isolation: Isolation, own: Mapping[str, str]) -> dict[str, str]:
    """What a sandboxed program's environment holds: nothing of the studio's but path, language and time zone."""
    kept = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
    if isolation is not Isolation.PROCESS_GROUP:
        kept |= {"HOME": "/scratch", "TMPDIR": "/tmp"}  # noqa: S108  the room's own
    return kept | dict(own)


def _candidates() -> Iterator[Isolation]:
    if sys.platform != "linux":
        return
    if os.geteuid() != 0 and shutil.which("bwrap"):
        yield Isolation.BUBBLEWRAP
    yield Isolation.NAMESPACES


def _trouble(isolation: Isolation) -> str:
    """Why a program would not be kept apart this way; empty when it was."""
    with tempfile.TemporaryDirectory() as outside, tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        secret = Path(outside) / "secret"
        secret.touch()
        probe = [sys.executable, "-I", "-S", "-c", _PROBE, str(secret), folder]
        try:
            done = subprocess.run(
                command(probe, Room(folder), isolation),
                env=environment(isolation, {}),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_LIMIT,
                text=True,
                errors="replace",
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]


def _bubblewrap(room: Room, shown: Sequence[str], links: Mapping[str, str]) -> list[str]:
    words = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent"]
    if room.network:
        words.append("--share-net")
    words += ["--proc", "/proc", "--dev", "/dev"]
    for path in ("/tmp", "/scratch"):  # noqa: S108  the room's own
        words += ["--size", str(PLACE_SIZE), "--tmpfs", path]
    for path in shown:  # some may lie below /tmp
        words += ["--ro-bind", path, path]
    for path, target in links.items():
        words += ["--symlink", target, path]
    return [*words, "--remount-ro", "/", "--chdir", room.folder]


def _shown(program: str, folder: str, more: Sequence[str] = ()) -> Iterator[str]:
    """What a program may read: the system's programs and libraries, its own, Python's, and its folder."""
    wanted = ["/usr", *(f"/{name}" for name in SYSTEM if not Path(f"/{name}").is_symlink())]
    wanted += [f"/etc/{name}" for name in ETC]
    wanted += [sys.prefix, sys.base_prefix]
    for file in (Path(program), Path(program).resolve(), Path(sys.executable).resolve()):
        wanted += [str(file.parent), str(file.parent.parent / "lib")] if file.parent.name == "bin" else [str(file)]
    covered = [*_links()]  # what is below a link is shown where the link leads
    for path in sorted({os.path.normpath(path) for path in [*wanted, *more, folder]}):
        if Path(path).exists() and not any(path == one or path.startswith(f"{one}/") for one in covered):
            covered.append(path)
            yield path


def _links() -> dict[str, str]:
    """The system's folders that are links on this machine, with where they lead."""
    return {f"/{name}": os.readlink(f"/{name}") for name in SYSTEM if Path(f"/{name}").is_symlink()}  # noqa: PTH115
