"""Calls that look like the one a person is asked about, and how they went (RULES U7)."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from base import ids
from jobs.models import Call
from jobs.rules.states import CALL_FINAL, CallState

COUNTED: Final = 100  # of the last calls of the function
SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class PastRow:
    """One call of the same function. `same` says that its arguments were the same, too."""

    shown_id: str
    state: CallState
    agent: str
    at: datetime
    same: bool


@dataclass(frozen=True, slots=True)
class Alike:
    """How the last calls of the function went: how many are in each state, and the nearest of them."""

    counts: tuple[tuple[CallState, int], ...]
    same: int
    rows: tuple[PastRow, ...]

    @property
    def count(self) -> int:
        """How many were looked at."""
        return sum(count for _, count in self.counts)


def alike_calls(call: Call) -> Alike:
    """The last hundred calls of the same function before this one, those with the same arguments named first.

    Demands an open read.
    """
    before = Call.objects.filter(tool_slug=call.tool_slug, function_name=call.function_name, pk__lt=call.pk)
    columns = ("pk", "state", "args_digest", "job__agent_name", "created_at")
    found = list(before.order_by("-pk").values_list(*columns)[:COUNTED])
    rows = [
        PastRow(ids.show(ids.CALL, pk), CallState(state), agent, at, digest == call.args_digest)
        for pk, state, digest, agent, at in found
    ]
    nearest = sorted(rows, key=lambda row: (not row.same, row.state not in CALL_FINAL))[:SHOWN]
    counts = Counter(row.state for row in rows)
    return Alike(tuple(counts.most_common()), sum(row.same for row in rows), tuple(nearest))
