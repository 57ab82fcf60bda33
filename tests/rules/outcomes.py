"""How attempts can end, as values: every end with a wire record that a node could have written."""

from hypothesis import strategies as st

from catalog.rules.wire import AnswerEnd, Wire
from jobs.rules.orders import End, Outcome, Result
from jobs.rules.reasons import Reason

WITH_RESULT = (End.ANSWERED, End.BUSY)
REASONS = {
    End.ANSWERED: (Reason.ANSWERED, Reason.TOOL_ERROR, Reason.SERVER_ERROR, Reason.ASKED_FOR_INPUT, Reason.TOO_LARGE),
    End.BUSY: (Reason.BUSY,),
    End.NOT_MADE: (
        Reason.SERVER_NOT_UP,
        Reason.LISTING_CHANGED,
        Reason.FUNCTION_GONE,
        Reason.LATE_START,
        Reason.NO_SLOT,
        Reason.ARGUMENTS_UNSENDABLE,
    ),
    End.TIMED_OUT: (Reason.TIME_LIMIT,),
    End.BROKEN: (Reason.CONNECTION_BROKE,),
    End.UNREADABLE: (Reason.UNREADABLE,),
    End.LOST: (Reason.NODE_LOST, Reason.NODE_STOPPING, Reason.TIME_LIMIT),
    End.STOPPED: (Reason.STOPPED_CANCEL, Reason.STOPPED_SWITCH, Reason.STOPPED_LIMIT),
}


def ended(
    end: End, *, went_out: bool = True, is_error: bool = False, reason: Reason | None = None, wait: float | None = None
) -> Outcome:
    """An attempt that ended like this."""
    out = (went_out or end in WITH_RESULT) and end is not End.NOT_MADE
    wire = Wire(connected=out, went_out=out, ended=AnswerEnd.COMPLETE if end in WITH_RESULT else AnswerEnd.NONE)
    result = Result("the tool's words", is_error or end is End.BUSY) if end in WITH_RESULT else None
    return Outcome(end, reason or REASONS[end][0], wire, result, retry_after=wait if end is End.BUSY else None)


@st.composite
def outcomes(draw: st.DrawFn, ends: tuple[End, ...] = tuple(End)) -> Outcome:
    """Any outcome a node could hand in."""
    end = draw(st.sampled_from(ends))
    return ended(
        end,
        went_out=draw(st.booleans()),
        is_error=draw(st.booleans()),
        reason=draw(st.sampled_from(REASONS[end])),
        wait=draw(st.none() | st.floats(0, 10_000)),
    )
