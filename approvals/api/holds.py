"""The open questions for pagers. There is no way to answer one here, whoever asks (RULES A5)."""

from http import HTTPStatus
from typing import Any

from approvals.queries.open_holds import open_holds as read
from base import ids
from jobs.rules.states import HoldKind
from tenants.queries.seats import Seat
from tenants.views.programs import Refused, read_by_programs


def _open_holds(seat: Seat, after: str, kind: str) -> dict[str, Any]:
    """What waits, oldest first, a hundred at a time."""
    if kind and kind not in set(HoldKind):
        raise Refused(HTTPStatus.BAD_REQUEST, f"kind is one of {', '.join(HoldKind)}, or is left out.")
    try:
        last = ids.parse(ids.HOLD, after) if after else None
    except ids.BadId as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "after is what an answer before said under next.") from error
    return read(seat.tenant, after=last, kind=kind)


open_holds = read_by_programs(_open_holds, asked=("after", "kind"))
