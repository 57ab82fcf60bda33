"""What a client shows the journal: a project's key, or the token pair of a login. Both are read anew for each call."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from base.addresses import Refused, literal, read_url

EARLY: Final = 30.0  # seconds before its end at which an access token is exchanged
LONGEST: Final = 4_096  # characters of a key
KEY: Final = "OZ0_BUDGET_KEY"
KEY_FILE: Final = "OZ0_BUDGET_KEY_FILE"
STUDIO: Final = "OZ0_BUDGET_URL"


class NoCredentials(Exception):
    """There is none, or it cannot be read, or it counts no more. The message says how to get one."""


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
    """What goes into a request, and the pair it is of when there is one."""

    token: str
    pair: Pair | None = None

    @property
    def old(self) -> bool:
        """Whether it should be exchanged before it is used."""
        return self.pair is not None and time.time() > self.pair.expires_at - EARLY


class Credentials(Protocol):
    """Where they are kept. Both may block in the operating system."""

    def read(self) -> Shown:
        """What is there now. Raises `NoCredentials`."""
        ...

    def save(self, pair: Pair) -> None:
        """Keep a new pair: the refresh token first, since without it the next pair can never be had."""
        ...


@dataclass(frozen=True, slots=True)
class KeyOfEnvironment:
    """A project's key in a variable or a file that the environment names."""

    file: Path | None = None

    def read(self) -> Shown:
        """The key. Raises `NoCredentials`."""
        named = self.file or (Path(os.environ[KEY_FILE]) if os.environ.get(KEY_FILE) else None)
        try:
            key = (named.read_text() if named is not None else os.environ.get(KEY, "")).strip()
        except (OSError, ValueError) as error:
            raise NoCredentials(f"The key's file cannot be read: {named}. Name one that can.") from error
        if not key:
            raise NoCredentials(f"There is no key: put a project's key into {KEY}, or its file into {KEY_FILE}.")
        if not key.isascii() or not key.isprintable() or " " in key or len(key) > LONGEST:
            raise NoCredentials("The key is not one: it has characters that no key has.")
        return Shown(key)

    def save(self, pair: Pair) -> None:
        """A key is never exchanged."""
        raise AssertionError("a project's key has no pair")


@dataclass(frozen=True, slots=True)
class PairOfLogin:
    """The pair of `oz0 login`, in two files of a folder that nobody else may read."""

    folder: Path

    def read(self) -> Shown:
        """The pair. Raises `NoCredentials`."""
        try:
            refresh = self._refresh.read_text().strip()
            access = json.loads(self._access.read_text())
            names = [str(access.get(name, "")) for name in ("project_id", "project")]
            pair = Pair(access["access_token"], refresh, float(access["expires_at"]), *names)
        except FileNotFoundError as error:
            raise NoCredentials(f"There is no key and no login: set {KEY}, or type oz0 login.") from error
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise NoCredentials(f"{self.folder} cannot be read: type oz0 login once more.") from error
        return Shown(pair.access, pair)

    def save(self, pair: Pair) -> None:
        """Keep it: if the process ends between the two, the next one gets a pair for the new refresh token."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(self._refresh, pair.refresh)
        kept = {"access_token": pair.access, "expires_at": pair.expires_at}
        _write(self._access, json.dumps(kept | {"project_id": pair.project, "project": pair.name}))

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


@dataclass(frozen=True, slots=True)
class OfNoStudio:
    """Where no studio is named: the tools can be listed, and none can be used."""

    def read(self) -> Shown:
        """Always raises `NoCredentials`."""
        raise NoCredentials(f"No studio is named: put its address into {STUDIO}.")

    def save(self, pair: Pair) -> None:
        """There is none."""
        raise AssertionError("no studio has given a pair")


def found_for(studio: str, *, file: Path | None = None) -> Credentials:
    """Where the credentials for a studio are: a key that was named, else the login's pair."""
    if not studio:
        return OfNoStudio()
    if file is not None or os.environ.get(KEY) or os.environ.get(KEY_FILE):
        return KeyOfEnvironment(file)
    return PairOfLogin(folder_of(studio))


def folder_of(studio: str) -> Path:
    """Where the pair of a studio is kept, in this user's folder for settings."""
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
    return found.origin


def _write(file: Path, text: str) -> None:
    """The whole text or what was there before, for this account alone to read."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(file)
