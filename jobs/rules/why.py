"""Why a call or a job stands where it does, beside the ends of attempts in `reasons`: codes and their sentences."""

from enum import StrEnum
from typing import Final

from jobs.rules import reasons

RATE_FULL: Final = "A rate of the policy is full: "  # how the detail of a call begins that is due later for it


class Why(StrEnum):
    """A code is written to the database and never changes its meaning."""

    SUBMITTED = "submitted"
    POLICY_ASKS = "policy_asks"
    POLICY_ASKS_AGAIN = "policy_asks_again"
    POLICY_REFUSES = "policy_refuses"
    BAD_ARGUMENTS = "bad_arguments"
    NO_SUCH_FUNCTION = "no_such_function"
    KILL_SWITCH = "kill_switch"
    CANCELLED = "cancelled"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    HAPPENED = "happened"
    RUN_AGAIN = "run_again"
    STOPPED_BY_PERSON = "stopped_by_person"
    JOB_LIMIT = "job_limit"
    TOOL_GONE = "tool_gone"
    WOULD_NOT_START = "would_not_start"
    UNKNOWN_OUTCOME = "unknown_outcome"
    AGENT_ERROR = "agent_error"
    MODEL_ERROR = "model_error"
    DONE = "done"
    SAID = "said"
    ENTRY_CHANGED = "entry_changed"
    WORD_WITHDRAWN = "word_withdrawn"
    OLD_KEY = "old_key"
    ANSWERED_HERE = "answered_here"
    EDITED = "edited"
    CALL_ENDED = "call_ended"
    CLIENT_CANCELLED = "client_cancelled"
    CLIENT_IDLE = "client_idle"
    SESSION_LOST = "session_lost"
    STARTED_AGAIN = "started_again"
    STARTED_AGAIN_BY_PERSON = "started_again_by_person"
    FINISHED = "finished"


SENTENCES: Final[dict[Why, str]] = {
    Why.SUBMITTED: "It was asked for by the agent.",
    Why.POLICY_ASKS: "The policy asks a person first.",
    Why.POLICY_ASKS_AGAIN: "What was approved has changed, so a person is asked again.",
    Why.POLICY_REFUSES: "The policy refuses it.",
    Why.BAD_ARGUMENTS: "Its arguments do not fit the function's schema.",
    Why.NO_SUCH_FUNCTION: "The agent may not call a function of this name.",
    Why.KILL_SWITCH: "A kill switch stopped it.",
    Why.CANCELLED: "Its job was cancelled.",
    Why.APPROVED: "A person approved it.",
    Why.DENIED: "A person denied it.",
    Why.EXPIRED: "Nobody answered in time. Nobody decided against it.",
    Why.HAPPENED: "A person checked and says that it happened.",
    Why.RUN_AGAIN: "A person asked for one more attempt.",
    Why.STOPPED_BY_PERSON: "A person stopped the job instead of answering.",
    Why.JOB_LIMIT: "The job reached a limit of its agent.",
    Why.TOOL_GONE: "The tool or function is no longer there.",
    Why.WOULD_NOT_START: "The tool's server would not start, so nothing was sent.",
    Why.UNKNOWN_OUTCOME: "Nobody knows whether a write happened, and the agent says not to ask.",
    Why.AGENT_ERROR: "The agent's definition does not fit what it was asked to do.",
    Why.MODEL_ERROR: "The model could not be asked.",
    Why.DONE: "The agent finished.",
    Why.SAID: "The agent said what it had to say.",
    Why.ENTRY_CHANGED: "The server describes the function otherwise since it was asked for, so it is asked anew.",
    Why.WORD_WITHDRAWN: "What the server says of this function is approved no more, so it is asked anew.",
    Why.ANSWERED_HERE: "The studio answered it itself.",
    Why.EDITED: "A person edited its arguments, so it has to be approved as it is now.",
    Why.CALL_ENDED: "Its one call did not succeed.",
    Why.CLIENT_CANCELLED: "The client that asked for it cancelled it.",
    Why.CLIENT_IDLE: "Its client made no call for 30 minutes.",
    Why.SESSION_LOST: "Its program was lost with its node.",
    Why.STARTED_AGAIN: "Its program was started again, since all it had called may be called again.",
    Why.STARTED_AGAIN_BY_PERSON: "A person had its program started again.",
    Why.FINISHED: "A person says that it is finished.",
    Why.OLD_KEY: "It may have acted, and its key is so old that the service may have forgotten it.",
}


def sentence(code: str) -> str:
    """The sentence for a call's, job's or attempt's code; the code itself when it is none of ours."""
    try:
        return SENTENCES[Why(code)]
    except ValueError:
        return reasons.sentence(code)
