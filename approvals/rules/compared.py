"""What of a call's arguments was not seen in earlier calls of its function: facts, and no judgement of them."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from approvals.rules.readable import Line
from base.visible import Kind, pieces

LEAST: Final = 3  # earlier calls, before anything counts as new
FEW: Final = 4  # calls to one value: with more values than that, each is expected to differ
NAMED: Final = 3  # values that are named
KEPT: Final = 60  # values counted at one place

_PLACE: Final = re.compile(r"\[\d+\]")
_TURNS: Final = frozenset({0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)})


@dataclass(frozen=True, slots=True)
class Remark:
    """What earlier calls had at one place: in words, and their most frequent `values` (untrusted), with `more` of them.

    `new` says that no earlier call had what this one has.
    """

    says: str
    values: tuple[str, ...] = ()
    more: bool = False
    new: bool = False


@dataclass(slots=True)
class _Place:
    given: int = 0
    low: float | None = None
    high: float | None = None
    values: Counter[str] = field(default_factory=Counter)
    many: bool = False  # more values than are kept

    def add(self, line: Line) -> None:
        number = _number(line)
        if number is None:
            if line.text in self.values or len(self.values) < KEPT:
                self.values[line.text] += 1
            else:
                self.many = True
            return
        self.low = number if self.low is None else min(self.low, number)
        self.high = number if self.high is None else max(self.high, number)


@dataclass(slots=True)
class Past:
    """The arguments of earlier calls of one function, as they are added."""

    calls: int = 0
    _places: dict[str, _Place] = field(default_factory=dict)

    def add(self, lines: Iterable[Line]) -> None:
        """One more call, by its values."""
        self.calls += 1
        here = set()
        for line in lines:
            place = self._places.setdefault(_PLACE.sub("[]", line.path), _Place())
            place.add(line)
            here.add(_PLACE.sub("[]", line.path))
        for path in here:
            self._places[path].given += 1

    def remark(self, line: Line) -> Remark | None:
        """What is to be said of this value; None where too few calls were before, or each had another value."""
        if self.calls < LEAST:
            return None
        place = self._places.get(_PLACE.sub("[]", line.path))
        if place is None:
            return Remark("never given before", new=True)
        number = _number(line)
        if number is not None and place.low is not None and place.high is not None:
            return _of_number(number, place.low, place.high)
        if number is None and not place.values:
            return Remark("never given before as text" if line.quoted else "always a number before", new=True)
        return _of_value(line, place)

    def missing(self, lines: Iterable[Line]) -> tuple[str, ...]:
        """The places at which every earlier call had something, and this one has nothing."""
        if self.calls < LEAST:
            return ()
        here = {_PLACE.sub("[]", line.path) for line in lines}
        always = (path for path, place in self._places.items() if place.given == self.calls and path not in here)
        return tuple(islice(always, NAMED))


def _of_value(line: Line, place: _Place) -> Remark | None:
    told, different = sum(place.values.values()), len(place.values)
    if told < LEAST or place.many or (different > 1 and told < FEW * different):
        return None
    if line.text in place.values:
        return Remark("always so before" if different == 1 else "so before, too")
    named = tuple(value for value, _ in place.values.most_common(NAMED))
    return Remark("new value", named, more=different > NAMED, new=True)


def _of_number(number: float, low: float, high: float) -> Remark:
    """Far outside is further from what was before than that reaches, or than twice as much: numbers that count up are
    each above all before."""
    reach = max(high - low, abs(high))
    if number > high + reach:
        return Remark(f"never before above {_said(high)}", new=True)
    if number < low - max(high - low, abs(low)) or (number < 0 <= low):
        return Remark(f"never before below {_said(low)}", new=True)
    return Remark(f"{_said(low)} to {_said(high)} before" if high > low else f"{_said(low)} before")


def _number(line: Line) -> float | None:
    if line.quoted:
        return None
    try:
        value = json.loads(line.text)
    except ValueError:
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _said(number: float) -> str:
    return str(int(number)) if number.is_integer() else f"{number:g}"


def hidden_words(text: str) -> tuple[str, ...]:
    """For each kind of character in `text` that is shown by its code: the code, and in words what it does."""
    found = {piece.text: piece.note for piece in pieces(text) if piece.kind is Kind.HIDDEN}
    return tuple(f"{code}, {note}: {_does(code)}" for code, note in islice(found.items(), NAMED))


def _does(code: str) -> str:
    if int(code.removeprefix("U+"), 16) in _TURNS:
        return "on other screens it is not seen and turns around the text after it"
    return "on other screens it is not seen"
