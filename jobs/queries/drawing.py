"""How a turn or a call is drawn on the trace's axis: its segments, its waits, and where its words find room."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from jobs.models import Attempt, Call, Hold, Turn
from jobs.queries.story import Says
from jobs.rules.axis import Axis, lay_out
from jobs.rules.progress import share_done
from jobs.rules.states import CALL_FINAL, CallState
from jobs.rules.why import Why

LEAST_PIECE: Final = 0.6  # width of the shortest segment, of 100
LEAST_WAIT: Final = 0.05  # seconds
LETTER: Final = 1.05  # width of a letter beside the drawing, of 100, on the narrowest axis that shows it


@dataclass(frozen=True, slots=True)
class Segment:
    """A turn or an attempt on the axis, from `x`, `width` wide, both of 100. `of` and `state` give its colour.

    `got` is how much of the width the attempt's progress fills, also of 100.
    """

    of: str
    state: str
    x: float
    width: float
    says: str
    got: float = 0.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Time in which a call stood still."""

    x: float
    width: float
    says: str


@dataclass(frozen=True, slots=True)
class Beside:
    """Where words stand beside a drawing: `x` of 100, and which end of the words is there (`start` or `end`)."""

    x: float
    anchor: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """One line's drawing; `beside` is None when its words need a line of their own."""

    segments: tuple[Segment, ...]
    waits: tuple[Wait, ...] = ()
    beside: Beside | None = None


class Drawing:
    """The axis of one page of a trace, with everything on it placed."""

    def __init__(
        self,
        turns: list[Turn],
        calls: list[Call],
        attempts: Mapping[UUID, list[Attempt]],
        *,
        origin: datetime,
        end: datetime,
    ) -> None:
        self.origin = origin
        self.end = end
        self.axis = self._axis(turns, calls, attempts)

    def turn(self, turn: Turn) -> Drawn:
        """A turn is one segment."""
        x, width = self._place(turn.asked_at, turn.ended_at)
        words = turn.error or turn.say
        segment = Segment("turn", turn.state, x, width, f"turn {turn.number}")
        return Drawn((segment,), beside=_beside(len(words), [(x, width)]))

    def call(self, call: Call, attempts: list[Attempt], holds: list[Hold], says: Says) -> Drawn:
        """A call is its attempts and the waits around them; the last attempt of an unknown call has its colour."""
        segments = []
        for one in attempts:
            asked = call.state == CallState.UNKNOWN and one is attempts[-1]
            of, state = ("call", call.state) if asked else ("attempt", one.state)
            x, width = self._place(one.started_at, one.ended_at)
            got = round(width * share_done(one.progress, one.total) / 100, 2)
            segments.append(Segment(of, state, x, width, f"attempt {one.number}: {one.state}", got))
        if call.reason == Why.ANSWERED_HERE:
            x, width = self._place(call.created_at, call.ended_at)
            segments.append(Segment("call", call.state, x, width, "answered by the studio"))
        waits = tuple(self._waits(call, attempts, holds))
        places = [(one.x, one.width) for one in segments] + [(one.x, one.width) for one in waits]
        return Drawn(tuple(segments), waits, _beside(says.letters, places))

    def _axis(self, turns: list[Turn], calls: list[Call], attempts: Mapping[UUID, list[Attempt]]) -> Axis:
        spans: list[tuple[datetime, datetime | None]] = [(turn.asked_at, turn.ended_at) for turn in turns]
        spans += [(one.started_at, one.ended_at) for call in calls for one in attempts[call.pk]]
        busy = [(self._seconds(left), self._seconds(right or self.end)) for left, right in spans]
        stop = self.end
        if spans and all(call.state in CALL_FINAL for call in calls) and all(turn.ended_at for turn in turns):
            ends = [right for _, right in spans if right] + [call.ended_at for call in calls if call.ended_at]
            stop = max(ends)
        return lay_out(busy, start=0.0, end=self._seconds(stop))

    def _seconds(self, at: datetime) -> float:
        return (at - self.origin).total_seconds()

    def _place(self, start: datetime, end: datetime | None) -> tuple[float, float]:
        left, right = self.axis.x(self._seconds(start)), self.axis.x(self._seconds(end or self.end))
        width = max(right - left, LEAST_PIECE)
        return round(min(left, 100 - width), 2), round(width, 2)

    def _waits(self, call: Call, attempts: list[Attempt], holds: list[Hold]) -> Iterable[Wait]:
        """The stretches of a call's life in which no attempt was open."""
        since = call.created_at
        for attempt in [*attempts, None]:
            until = attempt.started_at if attempt else call.ended_at or self.end
            if (until - since).total_seconds() > LEAST_WAIT:
                asked = any(hold.opened_at < until and (hold.closed_at or until) > since for hold in holds)
                yield Wait(*self._place(since, until), "waiting for a person" if asked else "waiting")
            since = (attempt.ended_at if attempt else None) or self.end


def _beside(letters: int, places: list[tuple[float, float]]) -> Beside | None:
    """Right of the drawing, else left of it, else nowhere."""
    if not letters or not places:
        return None
    need = letters * LETTER + 2
    left, right = min(x for x, _ in places), max(x + width for x, width in places)
    if 100 - right >= need:
        return Beside(round(right + 1, 2), "start")
    return Beside(round(left - 1, 2), "end") if left >= need else None
