"""Taking known secrets out of a text before it is kept, sent or shown (RULES A14)."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

SHOWN: Final = "[secret]"
SHORT: Final = 6  # a value of fewer characters is looked for as a whole word only
CUT: Final = 4  # characters of a secret's beginning, or end, that are taken out where a text ends, or begins, with them
_CUT_OFF: Final = re.compile(r"… \(\d+ characters\)\Z")


class Mask:
    """Replaces these secrets wherever they stand in a text: as they are, in a URL, in JSON, in base64."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms: Final = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
        self._whole: Final = re.compile("|".join(map(_pattern, self._forms))) if self._forms else None

    @property
    def is_empty(self) -> bool:
        """Whether it takes nothing out."""
        return self._whole is None

    def uncut(self, text: str) -> str:
        """A text that nobody has cut, without them: what only begins as one does at its end stays."""
        return text if self._whole is None else self._whole.sub(SHOWN, text)

    def end(self, text: str) -> str:
        """The end of a longer text without them: also what it begins with of a secret that it was cut inside of."""
        found = self(text)
        left = max((_ends(form, found) for form in self._forms), default=0)
        return SHOWN + found[left:] if left else found

    def __call__(self, text: str) -> str:
        """The text without them. A text that was cut inside a secret loses the part that is left of it."""
        if self._whole is None:
            return text
        found = self._whole.sub(SHOWN, text)
        cut = _CUT_OFF.search(found)
        end = cut.start() if cut else len(found)
        begun = min((_begins(form, found[:end]) for form in self._forms), default=end)
        return found if begun == end else found[:begun] + SHOWN + found[end:]


def _begins(form: str, text: str) -> int:
    """Where the beginning of a form stands at the end of a text; the text's length where it does not.

    Tokens are thousands of characters long, so their beginnings are not tried one by one.
    """
    at = text.find(form[:CUT], max(0, len(text) - len(form) + 1)) if len(form) > CUT else -1
    while at >= 0 and not form.startswith(text[at:]):
        at = text.find(form[:CUT], at + 1)
    return at if at >= 0 else len(text)


def _ends(form: str, text: str) -> int:
    """How much of a text's beginning is the end of a form; 0 where it is not."""
    if len(form) <= CUT:
        return 0
    at = text.rfind(form[-CUT:], 0, len(form) - 1)
    while at >= 0 and not form.endswith(text[: at + CUT]):
        at = text.rfind(form[-CUT:], 0, at + CUT - 1)
    return at + CUT if at >= 0 else 0


def _forms(secret: str) -> Iterable[str]:
    """How a secret may stand in a text; of one with several lines each line by itself."""
    for line in {secret, *secret.splitlines()}:
        if line.strip():
            yield line
            yield quote(line, safe="")
            yield json.dumps(line)[1:-1]
            yield b64encode(line.encode("utf-8", "surrogatepass")).decode()


def _pattern(form: str) -> str:
    return re.escape(form) if len(form) >= SHORT else rf"(?<!\w){re.escape(form)}(?!\w)"
