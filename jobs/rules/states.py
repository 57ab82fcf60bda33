"""States and the moves between them. What is not in these tables is impossible (MACHINES 1).

Small letters move, CAPITALS are final. `docs/states.md` is drawn from here.
"""

from collections.abc import Mapping
from enum import StrEnum


class CallState(StrEnum):
    """Where a call stands."""

    HELD = "held"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    UNKNOWN = "unknown"
    CANCELLING = "cancelling"
    SUCCEEDED = "SUCCEEDED"
    ERRORED = "ERRORED"
    FAILED = "FAILED"
    REFUSED = "REFUSED"
    CANCELED = "CANCELED"
    HAPPENED = "HAPPENED"


class Effect(StrEnum):
    """What a call may have done in the world, summed over its attempts (RULES U10)."""

    NONE = "none"
    MADE = "made"
    MAYBE = "maybe"


class AttemptState(StrEnum):
    """Where one try of a call stands; the final words are those of `orders.End`."""

    OPEN = "open"
    ANSWERED = "answered"
    BUSY = "busy"
    NOT_MADE = "not_made"
    TIMED_OUT = "timed_out"
    BROKEN = "broken"
    UNREADABLE = "unreadable"
    LOST = "lost"
    STOPPED = "stopped"


class JobState(StrEnum):
    """Where a job stands. `cancelling` carries in `ends_as` what it will become."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    CANCELLING = "cancelling"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


class HoldState(StrEnum):
    """Whether a question to a person is still open."""

    OPEN = "open"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


class HoldKind(StrEnum):
    """What a person is asked."""

    APPROVE = "approve"  # may this call run?
    RETRY = "retry"  # may this call run again, now that policy asks?
    UNKNOWN = "unknown"  # did this write happen?
    SESSION = "session"  # a harness session was lost with its node


class SessionState(StrEnum):
    """Where a harness session stands."""

    STARTING = "starting"
    RUNNING = "running"
    SETTLING = "settling"
    LOST = "lost"
    ASKING = "asking"
    ENDED = "ended"
    STOPPED = "stopped"


class TurnState(StrEnum):
    """Where one question to the model stands."""

    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    LOST = "lost"
    BUSY = "busy"


class NodeState(StrEnum):
    """Whether a worker process lives."""

    ALIVE = "alive"
    DRAINING = "draining"
    GONE = "gone"
    LOST = "lost"


C, J, H, A, S, T, N = CallState, JobState, HoldState, AttemptState, SessionState, TurnState, NodeState

# one of the platform's own functions is answered as it is taken in, so a call may begin SUCCEEDED
CALL_STARTS: frozenset[CallState] = frozenset({C.HELD, C.QUEUED, C.REFUSED, C.ERRORED, C.SUCCEEDED})
CALL_MOVES: Mapping[CallState, frozenset[CallState]] = {
    C.HELD: frozenset({C.QUEUED, C.REFUSED, C.CANCELED, C.HELD, C.UNKNOWN}),
    C.QUEUED: frozenset({C.RUNNING, C.HELD, C.REFUSED, C.CANCELED, C.FAILED, C.UNKNOWN}),
    C.RUNNING: frozenset({C.SUCCEEDED, C.ERRORED, C.FAILED, C.RETRYING, C.UNKNOWN, C.CANCELLING}),
    C.RETRYING: frozenset({C.RUNNING, C.HELD, C.FAILED, C.UNKNOWN, C.CANCELED}),
    C.UNKNOWN: frozenset({C.QUEUED, C.HELD, C.HAPPENED, C.CANCELED, C.FAILED}),
    C.CANCELLING: frozenset({C.CANCELED, C.SUCCEEDED, C.ERRORED}),
}
JOB_STARTS: frozenset[JobState] = frozenset({J.QUEUED})
JOB_MOVES: Mapping[JobState, frozenset[JobState]] = {
    J.QUEUED: frozenset({J.RUNNING, J.CANCELLING}),
    J.RUNNING: frozenset({J.WAITING, J.COMPLETED, J.FAILED, J.CANCELLING}),
    J.WAITING: frozenset({J.RUNNING, J.CANCELLING}),
    J.CANCELLING: frozenset({J.CANCELED, J.FAILED}),
}
ATTEMPT_STARTS: frozenset[AttemptState] = frozenset({A.OPEN})
ATTEMPT_MOVES: Mapping[AttemptState, frozenset[AttemptState]] = {A.OPEN: frozenset(set(A) - {A.OPEN})}
HOLD_STARTS: frozenset[HoldState] = frozenset({H.OPEN})
HOLD_MOVES: Mapping[HoldState, frozenset[HoldState]] = {H.OPEN: frozenset({H.ANSWERED, H.WITHDRAWN, H.EXPIRED})}
SESSION_STARTS: frozenset[SessionState] = frozenset({S.STARTING})
SESSION_MOVES: Mapping[SessionState, frozenset[SessionState]] = {
    S.STARTING: frozenset({S.RUNNING, S.STOPPED}),
    S.RUNNING: frozenset({S.ENDED, S.LOST, S.STOPPED}),
    S.LOST: frozenset({S.SETTLING}),
    S.SETTLING: frozenset({S.STARTING, S.ASKING, S.STOPPED}),
    S.ASKING: frozenset({S.STARTING, S.ENDED, S.STOPPED}),
}
TURN_STARTS: frozenset[TurnState] = frozenset({T.ASKED})
TURN_MOVES: Mapping[TurnState, frozenset[TurnState]] = {
    T.ASKED: frozenset({T.ANSWERED, T.FAILED, T.LOST, T.BUSY}),
    T.LOST: frozenset({T.ASKED}),
    T.BUSY: frozenset({T.ASKED}),
}
NODE_STARTS: frozenset[NodeState] = frozenset({N.ALIVE})
NODE_MOVES: Mapping[NodeState, frozenset[NodeState]] = {
    N.ALIVE: frozenset({N.DRAINING, N.LOST}),
    N.DRAINING: frozenset({N.GONE, N.LOST}),
}

CALL_FINAL: frozenset[CallState] = frozenset(C) - CALL_MOVES.keys()
JOB_FINAL: frozenset[JobState] = frozenset(J) - JOB_MOVES.keys()
SESSION_FINAL: frozenset[SessionState] = frozenset(S) - SESSION_MOVES.keys()
MOVING: frozenset[CallState] = frozenset({C.QUEUED, C.RUNNING, C.RETRYING, C.CANCELLING})
ASKING: frozenset[CallState] = frozenset({C.HELD, C.UNKNOWN})


class ImpossibleMove(RuntimeError):
    """A move the tables do not have: a defect of ours, never a person's mistake."""


def check[State: StrEnum](moves: Mapping[State, frozenset[State]], old: State, new: State) -> None:
    """Raise `ImpossibleMove` unless `moves` allow old → new."""
    if new not in moves.get(old, frozenset()):
        raise ImpossibleMove(f"{type(old).__name__}: {old.value} → {new.value} is not a move")
