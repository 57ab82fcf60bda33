"""Where a program that did not start went wrong: the file and line in its own last words, when they name one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_PYTHON: Final = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,7})')
_OTHER: Final = re.compile(r"(?:file://)?(?P<file>/[^\s:()]+):(?P<line>\d{1,7})(?::\d+)?")
_SAID: Final = re.compile(r"[A-Z]\w*(?:\.\w+)*(?:Error|Exception|Exit|Interrupt|Warning)\b.*")


@dataclass(frozen=True, slots=True)
class Mishap:
    """What went wrong, in the program's own words, and where in its folder; no file when none of it is named."""

    file: str
    line: int
    said: str


def mishap(lines: Sequence[str], folder: str) -> Mishap:
    """The deepest place inside `folder` that these lines of stderr name, and the error they end with."""
    file, line, said = "", 0, ""
    inside = f"{folder.rstrip('/')}/"
    for text in lines:
        place = _PYTHON.match(text) or _OTHER.search(text)
        if place is not None and place["file"].startswith(inside):
            file, line = place["file"].removeprefix(inside), int(place["line"])
        elif found := _SAID.match(text.strip()):
            said = found.group()
    if not said:
        said = next((text.strip() for text in reversed(lines) if text.strip()), "")
    return Mishap(file, line, said)
