"""What must hold after every trial, each as a function from its evidence to what is wrong; nothing is right.

`test_invariants.py` shows for each that a journal, page or ledger made wrong on purpose is caught by it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from base.tags import status
from jobs.rules.limits import MAX_ATTEMPTS
from jobs.rules.states import AttemptState, CallState, Effect
from tests.faults.lab.classes import FAR, can_stop
from tests.faults.lab.evidence import Evidence

type Invariant = Callable[[Evidence], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold, and how."""

    invariant: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"


def plain_writes_at_most_once(seen: Evidence) -> Iterator[str]:
    """RULES U3, U6: a plain write is made once, and once more for each answer "run it again"."""
    kind = seen.trial.kind
    if not kind.keyed and not kind.reads and seen.effects > 1 + seen.again:
        yield f"{seen.effects} effects, with {seen.again} answers “run it again”"


def keyed_writes_once_per_key(seen: Evidence) -> Iterator[str]:
    """RULES K1, U2: under one key there is one effect, however many attempts there are."""
    if seen.trial.kind.keyed and not seen.trial.kind.lies and seen.effects > 1:
        yield f"{seen.effects} effects under one key"


def success_is_one_effect(seen: Evidence) -> Iterator[str]:
    """A call that SUCCEEDED did what it was for."""
    kind = seen.trial.kind
    if seen.state != CallState.SUCCEEDED:
        return
    if kind.reads and not seen.lines("received"):
        yield "it succeeded, and the server never had it"
    if not kind.reads and not kind.lies and not 1 <= seen.effects <= 1 + seen.again:
        yield f"it succeeded with {seen.effects} effects"


def none_is_nothing(seen: Evidence) -> Iterator[str]:
    """RULES U10: what is shown as having done nothing has done nothing."""
    if seen.effect == Effect.NONE and seen.effects and not (seen.trial.kind.reads and seen.trial.kind.lies):
        yield f"its effect is none, and the ledger has {seen.effects}"


def maybe_is_shown(seen: Evidence) -> Iterator[str]:
    """RULES L2, U10: the pages say what the call may have done, in its effect and where it ended, in words."""
    kind, label = seen.trial.kind, f"effect {status('effect', seen.effect, 'bare')}"
    if not kind.reads and label not in seen.call_page:
        yield f"the call's page does not say that its effect is {seen.effect}"
    ended = seen.state in (CallState.CANCELED, CallState.FAILED) and seen.effect == Effect.MAYBE
    words = ("may have acted", "may still land", "Nobody knows")
    said = seen.call_page.replace(label, "") + seen.job_page
    if ended and not any(word in said for word in words):
        yield "no page says that it may have acted"


def pages_show_the_states(seen: Evidence) -> Iterator[str]:
    """What a person sees is what the database has."""
    for name, page, state in (("call", seen.call_page, seen.state), ("job", seen.job_page, seen.job_state)):
        if f">{state}<" not in page:
            yield f"the {name}'s page does not show {state}"
    for attempt in seen.attempts:
        if f"<b>Attempt {attempt.number}</b>" not in seen.call_page:
            yield f"the call's page does not show attempt {attempt.number}"


def attempts_are_apart(seen: Evidence) -> Iterator[str]:
    """RULES L5: no attempt starts before the one before it has ended, by the journal and, where it stops, in truth."""
    for one, after in pairwise(seen.attempts):
        if one.ended_at is None or after.started_at < one.ended_at:
            yield f"attempt {after.number} started before attempt {one.number} had ended"
        if one.state == AttemptState.LOST and one.reason == "node_lost" and after.started_at < one.limit_at:
            yield f"attempt {after.number} started before the lost attempt {one.number} had passed its limit"
    if _stops_in_truth(seen):
        for (_, ended), (began, _) in pairwise(sorted(seen.spans)):
            if began < ended:
                yield f"two attempts ran at the server at once, for {ended - began:.3f} s"


def nothing_after_canceled(seen: Evidence) -> Iterator[str]:
    """RULES L2: CANCELED is said only when a call that can stop has stopped."""
    if seen.state == CallState.CANCELED and seen.canceled_at is not None and _stops_in_truth(seen):
        late = [line.what for line in seen.ledger if line.at > seen.canceled_at and line.what != "gone"]
        if late:
            yield f"after it was CANCELED the ledger got {', '.join(late)}"


def _stops_in_truth(seen: Evidence) -> bool:
    """Whether the end of an attempt ends the function: not where the wire is cut, nor over HTTP with a lost node."""
    lost = any(attempt.state == AttemptState.LOST for attempt in seen.attempts)
    far = seen.trial.server in FAR
    broken = far and any(attempt.state in (AttemptState.BROKEN, AttemptState.LOST) for attempt in seen.attempts)
    heard = not seen.trial.wired and not seen.deaf and not (far and (lost or broken))
    return can_stop(seen.trial.server, seen.trial.kind) and heard


def sent_as_recorded(seen: Evidence) -> Iterator[str]:
    """RULES B7, K1: one request for each attempt that went out, all of one key and with the same arguments."""
    received = seen.lines("received")
    out = sum(attempt.went_out or attempt.state in _MAY_BE_OUT for attempt in seen.attempts)
    if len(received) > out:
        yield f"the server got {len(received)} requests, and {out} of {len(seen.attempts)} attempts went out"
    if any(line.key != seen.key for line in received):
        yield f"a request came under another key than {seen.key}"
    if any(line.digest != seen.digest for line in received):
        yield "a request came with other arguments"


_MAY_BE_OUT: Final = (AttemptState.LOST, AttemptState.OPEN)


def attempts_are_allowed(seen: Evidence) -> Iterator[str]:
    """RULES U2, U3: four attempts of a retry-safe call, one of any other, and one for each "run it again"."""
    most = (MAX_ATTEMPTS if seen.trial.kind.safe else 1) + seen.again
    if len(seen.attempts) > most:
        yield f"{len(seen.attempts)} attempts, where {most} are allowed"
    if [attempt.number for attempt in seen.attempts] != list(range(1, len(seen.attempts) + 1)):
        yield f"the attempts are numbered {[attempt.number for attempt in seen.attempts]}"


def resumes_where_it_was(seen: Evidence) -> Iterator[str]:
    """RULES P2, P3: what is sent to be resumed is a point that the server told of, before this request came."""
    told: set[int] = set()
    sent = []
    for line in seen.ledger:
        if line.what == "told" and line.step is not None:
            told.add(line.step)
        if line.what == "received" and line.resume is not None:
            sent.append(float(line.resume["progress"]))
            if line.resume["token"] != f"step-{line.resume['progress']:g}" or line.resume["progress"] not in told:
                yield f"it was sent {dict(line.resume)} to resume, and had told of {sorted(told)}"
    noted = [attempt.resumed_from for attempt in seen.attempts if attempt.resumed_from is not None]
    if any(point not in noted for point in sent):
        yield f"it was sent {sent} to resume, and the trace says {noted}"


def everything_ends(seen: Evidence) -> Iterator[str]:
    """In the end every call is final or waits for a person, and so is its job."""
    if not seen.final and not seen.asked:
        yield f"the call is {seen.state}, and nobody is asked"
    if seen.final and not seen.job_over:
        yield f"the call is {seen.state}, and its job stays {seen.job_state}"
    if seen.final and any(attempt.ended_at is None for attempt in seen.attempts):
        yield "an attempt of a call that is over is still open"


def events_tell_all(seen: Evidence) -> Iterator[str]:
    """Events are numbered without a gap, each attempt starts and ends once, and folding them gives the call's state."""
    numbers = [event.seq for event in seen.events]
    if numbers != list(range(1, seen.counted + 1)):
        yield f"the counter is at {seen.counted}, and the events are numbered {numbers}"
    for kind in ("attempt.started", "attempt.ended"):
        times = Counter(event.data["attempt"] for event in seen.events if event.kind == kind and event.mine)
        open_ = sum(attempt.ended_at is None for attempt in seen.attempts) if kind == "attempt.ended" else 0
        if len(times) != len(seen.attempts) - open_ or any(time != 1 for time in times.values()):
            yield f"{len(seen.attempts)} attempts have {sum(times.values())} events {kind}"
    state = None
    for event in seen.events:
        if event.mine and event.kind == "call.submitted":
            state = event.data["to"]
        if event.mine and event.kind == "call.moved":
            if event.data["frm"] != state:
                yield f"event {event.seq} moves the call from {event.data['frm']}, where it was {state}"
            state = event.data["to"]
    if state != seen.state:
        yield f"the events say that the call is {state}, and its row that it is {seen.state}"


INVARIANTS: Final[tuple[Invariant, ...]] = (
    plain_writes_at_most_once,
    keyed_writes_once_per_key,
    success_is_one_effect,
    none_is_nothing,
    maybe_is_shown,
    pages_show_the_states,
    attempts_are_apart,
    nothing_after_canceled,
    sent_as_recorded,
    attempts_are_allowed,
    resumes_where_it_was,
    everything_ends,
    events_tell_all,
)


def broken(seen: Evidence) -> list[Violation]:
    """Every invariant that does not hold."""
    return [Violation(holds.__name__, what) for holds in INVARIANTS for what in holds(seen)]
