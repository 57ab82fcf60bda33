"""Taking known secrets out of a text before it is kept, sent or shown (RULES A14)."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

SHOWN: Final = "[secret]"
SHORT: Final = 6  # a value of fewer characters is looked for as a whole word only
CUT: Final = 4  # characters of a secret's beginning that are taken out where a text ends with them
_CUT_OFF: Final = re.compile(r"… \(\d+ characters\)\Z")


class Mask:
    """Replaces these secrets wherever they stand in a text: as they are, in a URL, in JSON, in base64."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
        self._whole: Final = re.compile("|".join(map(_pattern, forms))) if forms else None
        begun = {form[:length] for form in forms for length in range(CUT, len(form))}
        longest = sorted(begun, key=len, reverse=True)
        self._begun: Final = re.compile(f"(?:{'|'.join(map(re.escape, longest))})\\Z") if longest else None

    def __call__(self, text: str) -> str:
        """The text without them. A text that was cut inside a secret loses the part that is left of it."""
        if self._whole is None:
            return text
        found = self._whole.sub(SHOWN, text)
        if self._begun is None:
            return found
        cut = _CUT_OFF.search(found)
        end = cut.start() if cut else len(found)
        return self._begun.sub(SHOWN, found[:end]) + found[end:]


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
