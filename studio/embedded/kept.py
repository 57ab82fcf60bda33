"""`services.json` in the state folder: what was started, as environment variables."""

import json
import os
from pathlib import Path

from studio.embedded.failure import CannotStart, cannot_keep


def load(home: Path) -> dict[str, str]:
    """The variables of the last start, or none. Raises `CannotStart` for a file that cannot be used."""
    file = home / "services.json"
    try:
        found = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except PermissionError as error:
        raise CannotStart(f"{file} belongs to another account: start as that account, or set OZ0_HOME") from error
    except (OSError, ValueError) as error:
        raise CannotStart(f"{file} cannot be read ({error}): delete it and start again") from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise CannotStart(f"{file} is not an object of texts: delete it and start again")
    return found


def save(home: Path, variables: dict[str, str]) -> None:
    """Replace the file in one step, readable by this account only. Raises `CannotStart`."""
    file = home / "services.json"
    fresh = home / "services.json.new"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            json.dump(variables, stream, indent=1, sort_keys=True)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(file)
    except OSError as error:
        raise cannot_keep("the services' addresses", error) from error
