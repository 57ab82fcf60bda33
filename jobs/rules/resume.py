"""Where a further attempt goes on, or why it starts over (RULES P2–P5)."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from jobs.rules.orders import ResumePoint


class StartOver(StrEnum):
    """Why an attempt starts from the beginning. A code is written to the database and never changes its meaning."""

    SHARED_SESSION = "shared_session"
    TAKES_NO_PART = "takes_no_part"
    OTHER_CONNECTION = "other_connection"
    MALFORMED_TOKEN = "malformed_token"  # noqa: S105  no secret
    NO_TOKEN = "no_token"  # noqa: S105  no secret
    NOTHING_REPORTED = "nothing_reported"


SENTENCES: Final[dict[StartOver, str]] = {
    StartOver.SHARED_SESSION: "a plugin's own server shares one session",
    StartOver.TAKES_NO_PART: "the function does not take part",
    StartOver.OTHER_CONNECTION: "the token came over another connection, and is sent to no other",
    StartOver.MALFORMED_TOKEN: "a malformed token was given",
    StartOver.NO_TOKEN: "no token was given",
    StartOver.NOTHING_REPORTED: "nothing was reported",
}


@dataclass(frozen=True, slots=True)
class Left:
    """What one earlier attempt left. `scope` names the connection and function it was made over."""

    point: ResumePoint | None
    scope: str
    reported: bool
    odd_token: bool


def how_to_go_on(left: Iterable[Left], *, remote: bool, takes_part: bool, scope: str) -> ResumePoint | StartOver:
    """For an attempt over `scope`, after the earlier attempts `left`, oldest first.

    The last token counts, with the progress that came with it; an attempt that reported nothing passes on what the
    one before it left. `takes_part` is for a retry-safe call of a function that says so.
    """
    earlier = list(left)
    if not remote:
        return StartOver.SHARED_SESSION
    if not takes_part:
        return StartOver.TAKES_NO_PART
    for one in reversed(earlier):
        if one.point is not None:
            return one.point if one.scope == scope else StartOver.OTHER_CONNECTION
    if any(one.odd_token for one in earlier):
        return StartOver.MALFORMED_TOKEN
    return StartOver.NO_TOKEN if any(one.reported for one in earlier) else StartOver.NOTHING_REPORTED


def sentence(resumed_from: float | None, of: float | None, started_over_because: str) -> str:
    """How an attempt began, for the trace; empty for one that had nothing before it (RULES P4)."""
    if resumed_from is not None:
        return f"resumed from progress {resumed_from:g}" + (f" of {of:g}" if of is not None else "")
    if not started_over_because:
        return ""
    try:
        return f"started over: {SENTENCES[StartOver(started_over_because)]}"
    except ValueError:
        return f"started over: {started_over_because}"
