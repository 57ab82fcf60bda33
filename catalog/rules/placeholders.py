"""`${…}` in a client's list of MCP servers: what can be filled in here, and what only that client could."""

import re
from collections.abc import Mapping
from typing import Final

_PLACE: Final = re.compile(r"\$\{([^{}]*)\}")
_PLAIN: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\Z", re.DOTALL)


class Unfilled(ValueError):
    """A placeholder that cannot be filled in; the message says why, `fix` what to write."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


def filled(text: str, environment: Mapping[str, str], *, keep: Mapping[str, str], shown: bool) -> str:
    """`text` with its placeholders filled from `environment`. Raises `Unfilled`.

    `${NAME}` of a variable in `keep` stays: the program has that variable and fills it in itself. Text that is `shown`
    on pages gets no variable's value, since that may be a secret.
    """

    def fill(match: re.Match[str]) -> str:
        inside = match.group(1)
        if inside in keep:
            return match.group()
        if inside in ("userHome", "/", "pathSeparator"):
            return environment.get("HOME", "~") if inside == "userHome" else "/"
        if inside.startswith("input:"):
            raise Unfilled(
                f"${{{inside}}} is a value that an editor asks for",
                "write the value itself, or ${env:NAME} and set NAME while you import",
            )
        if inside.startswith("workspaceFolder"):
            raise Unfilled(f"${{{inside}}} is the folder that an editor has open", "write that folder's whole path")
        plain = _PLAIN.match(inside.removeprefix("env:"))
        if plain is None:
            raise Unfilled(f"${{{inside}}} is something that only an editor knows", "write the value itself")
        if shown:
            raise Unfilled(
                f"${{{inside}}} may be a secret, and this is kept in a file",
                "write the value itself when it is none; else give it under `env` or `headers`",
            )
        value = environment.get(plain[1], plain[2])
        if value is None:
            raise Unfilled(f"${{{inside}}} is not set here", f"say {plain[1]}=… oz0 import, or write the value itself")
        return value

    return _PLACE.sub(fill, text)
