"""What a client shows the journal: a project's key, or the token pair of a login. Both are read anew for each call."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

from base.addresses import Refused, literal, read_url

EARLY: Final = 30.0  # seconds before its end at which an access token is exchanged
LONGEST: Final = 4_096  # characters of a key
KEY: Final = "OZ0_BUDGET_KEY"
KEY_FILE: Final = "OZ0_BUDGET_KEY_FILE"
STUDIO: Final = "OZ0_BUDGET_URL"
NONE: Final = (
    f"There is no key and no login's pair: set {KEY}, or type oz0 login, and then oz0 budget usage --project NAME."
)


class NoCredentials(Exception):
    """There is none, or it cannot be read, or it counts no more. The message says how to get one."""


class SeveralPairs(NoCredentials):
    """Nobody said which project's."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An access token, until when it is good (seconds since 1970), and the token that gets the next pair, once."""

    access: str
    refresh: str
    expires_at: float
    project: str = ""
    name: str = ""  # of the project, as it was asked for

    @classmethod
    def read(cls, said: object) -> "Pair | None":
        """The pair that the studio gave, None when it is none."""
        body = said if isinstance(said, dict) else {}
        access, refresh, lasts = body.get("access_token"), body.get("refresh_token"), body.get("expires_in")
        if not (isinstance(access, str) and access and isinstance(refresh, str) and refresh):
            return None
        if not isinstance(lasts, int | float) or isinstance(lasts, bool) or not 0 < lasts < 10**9:
            return None
        return cls(access, refresh, time.time() + lasts, str(body.get("project_id") or ""))


@dataclass(frozen=True, slots=True)
class Shown:
    """What goes into a request; of a login also the pair that it is of, and where that is kept."""

    token: str
    pair: Pair | None = None
    kept: "PairOfLogin | None" = None

    @property
    def old(self) -> bool:
        """Whether it should be exchanged before it is used."""
        return self.pair is not None and time.time() > self.pair.expires_at - EARLY


class Credentials(Protocol):
    """Where they are kept."""

    def read(self) -> Shown:
        """What is there now. May block in the operating system. Raises `NoCredentials`."""
        ...


@dataclass(frozen=True, slots=True)
class KeyOfEnvironment:
    """A project's key in a variable or a file that the environment names."""

    file: Path | None = None

    def read(self) -> Shown:
        """The key. Raises `NoCredentials`."""
        named = self.file or (Path(os.environ[KEY_FILE]) if os.environ.get(KEY_FILE) else None)
        try:
            key = (_beginning(named) if named is not None else os.environ.get(KEY, "")).strip()
        except (OSError, ValueError) as error:
            raise NoCredentials(f"The key's file cannot be read: {named}. Name one that can.") from error
        if not key:
            raise NoCredentials(f"There is no key: put a project's key into {KEY}, or its file into {KEY_FILE}.")
        if not key.isascii() or not key.isprintable() or " " in key or len(key) > LONGEST:
            raise NoCredentials("The key is not one: it has characters that no key has.")
        return Shown(key)


class Turn:
    """The right to exchange a pair, which one task of one process has at a time. Given back, it is taken no more."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self._mutex: Final = Lock()  # around what never blocks
        self._held: int | None = None
        self._over = False

    def taken(self, *, wait: bool = False) -> bool:
        """Whether it is ours now. Raises `NoCredentials` where there is no pair."""
        try:
            held = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise NoCredentials(NONE) from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return False
        except BaseException:
            os.close(held)
            raise
        with self._mutex:
            self._held = held
        if self._over:  # whoever wanted it has gone meanwhile
            self.give_back()
        return True

    def give_back(self) -> None:
        """Let the next one have it."""
        self._over = True
        with self._mutex:
            held, self._held = self._held, None
        if held is not None:
            os.close(held)


@dataclass(frozen=True, slots=True)
class PairOfLogin:
    """The pair that a studio gave to a login for one project, in two files of a folder that nobody else may read."""

    folder: Path
    project: str | None = None  # by its name or id, as it was asked for

    def read(self) -> Shown:
        """The pair. Raises `NoCredentials`."""
        try:
            refresh = self._refresh.read_text().strip()
            access = json.loads(self._access.read_text())
            names = [str(access.get(name, "")) for name in ("project_id", "project")]
            pair = Pair(access["access_token"], refresh, float(access["expires_at"]), *names)
        except FileNotFoundError as error:
            raise NoCredentials(NONE) from error
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise NoCredentials(f"{self.folder} cannot be read: type oz0 login once more.") from error
        if self.project not in (None, *names):
            raise NoCredentials(f"{self.folder} is not of the project that was asked for. {NONE}")
        return Shown(pair.access, pair, self)

    def save(self, pair: Pair) -> None:
        """Keep it: the refresh token first, since without it the next pair can never be had."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(self._refresh, pair.refresh)
        kept = {"access_token": pair.access, "expires_at": pair.expires_at}
        _write(self._access, json.dumps(kept | {"project_id": pair.project, "project": pair.name}))

    def turn(self) -> Turn:
        """What whoever exchanges it takes first, and then reads it again: exchanging it takes its place."""
        return Turn(self.folder)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have the turn, after waiting for it; the folder is there then."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        turn = self.turn()
        turn.taken(wait=True)
        try:
            yield
        finally:
            turn.give_back()

    def forget(self) -> None:
        """Keep it no more."""
        for file in (self._refresh, self._access):
            file.unlink(missing_ok=True)

    @property
    def _refresh(self) -> Path:
        return self.folder / "refresh"

    @property
    def _access(self) -> Path:
        return self.folder / "access.json"


@dataclass(slots=True)
class OnlyPair:
    """The pair of the only project that one is kept for. Once found it stays that one, whatever is kept beside it."""

    studio: str
    found: PairOfLogin | None = None

    def read(self) -> Shown:
        """The pair. Raises `NoCredentials`, also where there are several."""
        if self.found is None:
            self.found = only_pair(self.studio)
        return self.found.read()


@dataclass(frozen=True, slots=True)
class OfNoStudio:
    """Where no studio is named: the tools can be listed, and none can be used."""

    def read(self) -> Shown:
        """Always raises `NoCredentials`."""
        raise NoCredentials(f"No studio is named: put its address into {STUDIO}.")


def found_for(studio: str, *, file: Path | None = None, project: str | None = None) -> Credentials:
    """Where the credentials for a studio are: a key, else a login's pair. Raises `ValueError` for both at once."""
    named = "--key-file" if file is not None else next((name for name in (KEY_FILE, KEY) if os.environ.get(name)), None)
    if named is not None and project is not None:
        raise ValueError(
            f"a key is of one project for good, and {named} names one: leave --project out, or, to spend for "
            f"{project} by your login, leave {named} out"
        )
    if not studio:
        return OfNoStudio()
    if named is not None:
        return KeyOfEnvironment(file)
    return OnlyPair(studio) if project is None else pair_of(studio, project)


def pair_of(studio: str, project: str) -> PairOfLogin:
    """Where the pair of a project is kept, also while there is none. Each project has a place of its own."""
    return PairOfLogin(_folder_of(studio) / sha256(project.encode()).hexdigest()[:32], project)


def only_pair(studio: str) -> PairOfLogin:
    """The one pair that is kept of a studio. Raises `NoCredentials` for none, and `SeveralPairs`."""
    found = {one.folder.name: one for one in _pairs(studio)}
    if len(found) > 1:
        raise SeveralPairs("Your login has keys of several projects here: say which one with --project NAME.")
    if not found:
        raise NoCredentials(NONE)
    return next(iter(found.values()))


def forget_pairs(studio: str) -> None:
    """Keep none of a studio any more; whoever is exchanging one is waited for."""
    for one in _pairs(studio):
        with one.alone():
            one.forget()


def _pairs(studio: str) -> list[PairOfLogin]:
    return [PairOfLogin(refresh.parent) for refresh in sorted(_folder_of(studio).glob("*/refresh"))]


def _folder_of(studio: str) -> Path:
    """Where the pairs of a studio are kept, in this user's folder for settings."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "oz0" / "budgets" / studio.partition("://")[2].replace(":", "_").replace("/", "_")


def read_studio(text: str) -> str:
    """A studio's address in its one spelling: https, or of this machine. Raises `ValueError`, saying why not."""
    try:
        found = read_url(text if "://" in text else f"https://{text}")
    except Refused as error:
        raise ValueError(f"{text!r} is no address of a studio: {error}") from error
    address = literal(found.host)
    here = found.host == "localhost" or (address is not None and address.is_loopback)
    if found.scheme != "https" and not here:
        raise ValueError(f"{found.origin} is not https: the key would go there for everybody to read")
    if found.target != "/":
        raise ValueError(f"{text!r} is no address of a studio: write {found.origin}, with nothing behind it")
    return found.origin


def _beginning(file: Path) -> str:
    """Of a file that may have no end as much as no key is as long as. Raises `OSError`, `ValueError`."""
    with file.open() as text:
        return text.read(LONGEST + 2)


def _write(file: Path, text: str) -> None:
    """The whole text or what was there before, for this account alone to read."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(file)
