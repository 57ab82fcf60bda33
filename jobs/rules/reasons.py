"""Why an attempt ended as it did: the stable codes of `Outcome.reason`, and the sentence a person reads for each."""

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """A code is written to the database and never changes its meaning; add a new one instead."""

    ANSWERED = "answered"
    TOOL_ERROR = "tool_error"
    SERVER_ERROR = "server_error"
    ASKED_FOR_INPUT = "asked_for_input"
    TOO_LARGE = "too_large"
    BUSY = "busy"
    SERVER_NOT_UP = "server_not_up"
    LISTING_CHANGED = "listing_changed"
    FUNCTION_GONE = "function_gone"
    LATE_START = "late_start"
    NO_SLOT = "no_slot"
    ARGUMENTS_UNSENDABLE = "arguments_unsendable"
    TIME_LIMIT = "time_limit"
    CONNECTION_BROKE = "connection_broke"
    UNREADABLE = "unreadable"
    REFUSED_BY_SERVER = "refused_by_server"
    NODE_LOST = "node_lost"
    NODE_STOPPING = "node_stopping"
    STOPPED_CANCEL = "stopped_cancel"
    STOPPED_SWITCH = "stopped_switch"
    STOPPED_LIMIT = "stopped_limit"
    STOPPED_SESSION = "stopped_session"


SENTENCES: Final[dict[Reason, str]] = {
    Reason.ANSWERED: "The tool answered.",
    Reason.TOOL_ERROR: "The tool answered with an error.",
    Reason.SERVER_ERROR: "The server answered with an error instead of a result.",
    Reason.ASKED_FOR_INPUT: "The server asked for input, which is not given to it.",
    Reason.TOO_LARGE: "The call was made, but its answer was too large to keep.",
    Reason.BUSY: "The service is busy and asked to be called again later.",
    Reason.SERVER_NOT_UP: "The tool's server was not running, so nothing was sent.",
    Reason.LISTING_CHANGED: "The server now describes this function differently, so nothing was sent.",
    Reason.FUNCTION_GONE: "The server no longer has this function, so nothing was sent.",
    Reason.LATE_START: "Its time was over before it could be sent, so nothing was sent.",
    Reason.NO_SLOT: "The tool had no free slot on this node, so nothing was sent.",
    Reason.ARGUMENTS_UNSENDABLE: "The arguments cannot be written as JSON, so nothing was sent.",
    Reason.TIME_LIMIT: "It ran past its time limit.",
    Reason.CONNECTION_BROKE: "The connection ended without an answer after the request went out.",
    Reason.UNREADABLE: "An answer came that could not be read.",
    Reason.REFUSED_BY_SERVER: "The server refused the request before acting on it, so nothing was made.",
    Reason.NODE_LOST: "The node was lost while it ran.",
    Reason.NODE_STOPPING: "The node was stopping.",
    Reason.STOPPED_CANCEL: "It was stopped because its job was cancelled.",
    Reason.STOPPED_SWITCH: "It was stopped by a kill switch.",
    Reason.STOPPED_LIMIT: "It was stopped because its job reached a limit.",
    Reason.STOPPED_SESSION: "It was stopped because its program was lost with its node.",
}

# what an attempt may be told to stop for; one whose node was declared lost is no longer that node's own
STOPS: Final = frozenset(
    {Reason.STOPPED_CANCEL, Reason.STOPPED_SWITCH, Reason.STOPPED_LIMIT, Reason.STOPPED_SESSION, Reason.NODE_LOST}
)


def sentence(code: str) -> str:
    """The sentence for a code; the code itself when it is none of ours (a row written by a newer version)."""
    try:
        return SENTENCES[Reason(code)]
    except ValueError:
        return code
