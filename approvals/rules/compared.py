"""What of a call's arguments was not seen in earlier calls of its function: facts, and no judgement of them."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, NamedTuple

from approvals.rules.readable import Line
from base.visible import Kind, pieces

LEAST: Final = 3  # earlier calls, before anything counts as new
FEW: Final = 4  # calls to one value: with more values than that, each is expected to differ
NAMED: Final = 3  # values that are named
KEPT: Final = 1000  # values counted at one place
REPEATS: Final = 2  # calls to one value of an argument that others are told beside
SETTLED: Final = 3  # calls to one value of an argument that is told beside such a value
PAIRED: Final = 8  # earlier calls, before one argument is held to go with another
GOES_WITH: Final = 0.8  # of what guessing the most frequent value gets wrong, how much knowing the other argument mends
SURE: Final = 20  # numbers, above which twice as much is far outside; before that, four times
SPREAD: Final = 5  # numbers beside a value, before their range is told instead of that of all calls
PLACES: Final = 12  # arguments of a call that are told beside each other
SHORT: Final = 100  # characters of a value that others are told beside

_PLACE: Final = re.compile(r"\[\d+\]")
_TURNS: Final = frozenset({0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)})


@dataclass(frozen=True, slots=True)
class Beside:
    """Another argument of a call, and its value: both untrusted."""

    path: str
    value: str


@dataclass(frozen=True, slots=True)
class Remark:
    """What earlier calls had at one place: in words, and their most frequent `values` (untrusted), with `more` of them.

    Where `beside` is given, all of it is of those earlier calls that shared this other value. `new` says that none of
    them had what this one has.
    """

    says: str
    values: tuple[str, ...] = ()
    more: bool = False
    new: bool = False
    beside: Beside | None = None


class _Value(NamedTuple):
    text: str
    number: float | None


@dataclass(slots=True)
class _Place:
    """What calls had at one place: how many had each value, and the range of the numbers."""

    given: int = 0
    low: float | None = None
    high: float | None = None
    values: Counter[str] = field(default_factory=Counter)
    many: bool = False  # more values than are kept

    def add(self, found: Sequence[_Value]) -> None:
        self.given += 1
        for number in (one.number for one in found if one.number is not None):
            self.low = number if self.low is None else min(self.low, number)
            self.high = number if self.high is None else max(self.high, number)
        for text in {one.text for one in found if one.number is None}:
            if text in self.values or len(self.values) < KEPT:
                self.values[text] += 1
            else:
                self.many = True


@dataclass(slots=True)
class Past:
    """The arguments of earlier calls of one function, as they are added."""

    calls: int = 0
    _places: dict[str, _Place] = field(default_factory=dict)
    _rows: list[dict[str, _Value]] = field(default_factory=list)  # of each call, what is told beside each other
    _having: dict[str, dict[str, set[int]]] = field(default_factory=dict)  # the rows with a value at a place

    def add(self, lines: Iterable[Line]) -> None:
        """One more call, by its values."""
        found: dict[str, list[_Value]] = {}
        for line in lines:
            found.setdefault(_place_of(line), []).append(_Value(line.text, _number(line)))
        for path, here in found.items():
            self._places.setdefault(path, _Place()).add(here)
        pairs = ((path, here[0]) for path, here in found.items() if _pairable(path, here[0].text))
        row = dict(islice(pairs, PLACES))
        for path, value in row.items():
            self._having.setdefault(path, {}).setdefault(value.text, set()).add(self.calls)
        self._rows.append(row)
        self.calls += 1

    def remarks(self, lines: Sequence[Line]) -> tuple[Remark | None, ...]:
        """For each value of a call what is to be said of it; None where too few calls were before, or each had another.

        Of two arguments that were never beside each other the later is told, and not the first as well.
        """
        if self.calls < LEAST:
            return tuple(None for _ in lines)
        beside = self._told_beside(lines)
        told: set[tuple[str, str]] = set()  # (the argument, that beside which it is new)
        found = []
        for line in reversed(lines):
            remark = self._alone(line)
            if remark is None or not remark.new:
                others = {
                    one: rows
                    for one, rows in beside.items()
                    if one.path != line.path and (one.path, line.path) not in told
                }
                remark = self._together(line, others) or remark
            if remark and remark.new and remark.beside:
                told.add((line.path, remark.beside.path))
            found.append(remark)
        return tuple(reversed(found))

    def missing(self, lines: Iterable[Line]) -> tuple[str, ...]:
        """The places at which every earlier call had something, and this one has nothing."""
        if self.calls < LEAST:
            return ()
        here = {_place_of(line) for line in lines}
        always = (path for path, place in self._places.items() if place.given == self.calls and path not in here)
        return tuple(islice(always, NAMED))

    def _alone(self, line: Line) -> Remark | None:
        place = self._places.get(_place_of(line))
        if place is None:
            return Remark("never given before", new=True)
        number = _number(line)
        if number is not None and place.low is not None and place.high is not None:
            return _of_number(number, place.low, place.high, 1)
        if number is None and not place.values:
            return Remark("never given before as text" if line.quoted else "always a number before", new=True)
        return self._of_value(line, place)

    def _of_value(self, line: Line, place: _Place) -> Remark | None:
        count, different = place.values[line.text], len(place.values)
        if count:
            return Remark(
                f"in all {count:,} before" if count == self.calls else f"in {count:,} of {self.calls:,} before"
            )
        told = sum(place.values.values())
        if told < LEAST or place.many or (different > 1 and told < FEW * different):
            return None
        return Remark("never before", *_named(place.values), new=True)

    def _told_beside(self, lines: Sequence[Line]) -> dict[Beside, set[int]]:
        """Of the call's arguments those whose values repeat among earlier calls, each with the rows that share its."""
        found = {}
        for line in lines:
            having = self._having.get(line.path, {})
            rows = having.get(line.text, set())
            number = _number(line)
            named = number is None or number.is_integer()
            if named and len(rows) >= LEAST and 1 < len(having) <= self.calls / REPEATS:
                found[Beside(line.path, line.text)] = rows
        return found

    def _together(self, line: Line, beside: Mapping[Beside, set[int]]) -> Remark | None:
        """What is to be said of a value beside another of its call: the first that is new, else the narrowest range."""
        if line.path not in self._having or not _pairable(line.path, line.text):
            return None
        number = _number(line)
        narrowest = None
        for other, rows in beside.items():
            if number is None:
                remark = self._never_with(line, other.path, rows)
            else:
                reach, remark = self._ranging(number, line.path, rows)
                if remark and not remark.new and (narrowest is None or reach < narrowest[0]):
                    narrowest = reach, replace(remark, beside=other)
            if remark and remark.new:
                return replace(remark, beside=other)
        return narrowest[1] if narrowest else None

    def _never_with(self, line: Line, path: str, rows: set[int]) -> Remark | None:
        """That this text was in none of these calls, where what is at `path` told before which text it is."""
        if not self._having[line.path].get(line.text, set()).isdisjoint(rows):
            return None
        values = self._texts(line.path, rows)
        if values.total() < max(LEAST, SETTLED * len(values)) or not self._goes_with(line.path, path):
            return None
        return Remark("never before", *_named(values), new=True)

    def _goes_with(self, path: str, other: str) -> bool:
        """Whether the value at `other` mostly told which one is at `path`: otherwise any two values may first meet.

        The measure is Goodman and Kruskal's lambda, over the values at `other` that several calls had.
        """
        right, every = 0, Counter[str]()
        for rows in self._having[other].values():
            values = self._texts(path, rows)
            if values.total() > 1:
                right += max(values.values())
                every += values
        guessed = max(every.values(), default=0)
        wrong = every.total() - guessed
        return every.total() >= PAIRED and wrong > 0 and right - guessed >= GOES_WITH * wrong

    def _texts(self, path: str, rows: Iterable[int]) -> Counter[str]:
        return Counter(self._rows[row][path].text for row in rows if path in self._rows[row])

    def _ranging(self, number: float, path: str, rows: set[int]) -> tuple[float, Remark | None]:
        """How far the numbers of these calls range, and what is to be said: far outside, or a narrow range."""
        whole = self._places[path]
        here = (self._rows[row][path].number for row in rows if path in self._rows[row])
        numbers = [one for one in here if one is not None]
        if len(numbers) < LEAST or whole.low is None or whole.high is None:
            return 0, None
        low, high = min(numbers), max(numbers)
        remark = _of_number(number, low, high, 1 if len(numbers) >= SURE else 3)
        narrow = len(numbers) >= SPREAD and high - low <= (whole.high - whole.low) / 2
        return high - low, remark if remark.new or narrow else None


def _named(values: Counter[str]) -> tuple[tuple[str, ...], bool]:
    return tuple(value for value, _ in values.most_common(NAMED)), len(values) > NAMED


def _place_of(line: Line) -> str:
    return _PLACE.sub("[]", line.path)


def _pairable(path: str, text: str) -> bool:
    return "[" not in path and len(text) <= SHORT


def _of_number(number: float, low: float, high: float, times: int) -> Remark:
    """Far outside is `times` further from what was before than that reaches, or than it is itself: numbers that count
    up are each above all before."""
    if number > high + times * max(high - low, abs(high)):
        return Remark(f"never before above {_said(high)}", new=True)
    if number < low - times * max(high - low, abs(low)) or (number < 0 <= low):
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
    return f"{number:.12g}"


def hidden_words(text: str) -> tuple[str, ...]:
    """For each kind of character in `text` that is shown by its code: the code, and in words what it does."""
    found = {piece.text: piece.note for piece in pieces(text) if piece.kind is Kind.HIDDEN}
    return tuple(f"{code}, {note}: {_does(code)}" for code, note in islice(found.items(), NAMED))


def _does(code: str) -> str:
    if int(code.removeprefix("U+"), 16) in _TURNS:
        return "on other screens it is not seen and turns around the text after it"
    return "on other screens it is not seen"
