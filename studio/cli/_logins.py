"""The logins of this account: which studio's token stands for it, in a file that nobody else may read."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

NAME: Final = "logins.json"


@dataclass(frozen=True, slots=True)
class Login:
    """A token of a studio, kept since `oz0 login`."""

    url: str
    token: str
    person: str
    workspace: str
    expires_at: str


def place() -> Path:
    """Where they are kept: the user's folder for settings."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "oz0" / NAME


def kept() -> dict[str, Login]:
    """All of them by their studio's address, the last one first. Raises `ClickException` for what cannot be read."""
    try:
        raw = json.loads(place().read_text())
        return {one["url"]: Login(**one) for one in raw["logins"]}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError) as error:
        raise click.ClickException(f"{place()} cannot be read: remove it, and type oz0 login once more") from error


def keep(login: Login) -> None:
    """Keep one, before those of other studios."""
    _write([login, *(one for url, one in kept().items() if url != login.url)])


def forget(url: str) -> None:
    """Keep it no more."""
    _write([one for kept_url, one in kept().items() if kept_url != url])


def _write(logins: list[Login]) -> None:
    """A whole file or the one before, mode 0600 from its first byte on."""
    file = place()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump({"logins": [asdict(one) for one in logins]}, out, indent=1)
    fresh.replace(file)
