"""The status language: every state has an icon, one word and a colour, the same on every page.

The word is the state's own name; the tone is a colour of `static/css/tokens.css`. *Unknown* has a tone of its own:
it is neither good nor bad.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Status:
    """How one state looks. `says` is the tooltip: what it means, in a sentence."""

    icon: str
    word: str
    tone: str
    says: str


STATUSES: Final[dict[str, dict[str, tuple[str, str, str]]]] = {
    "job": {
        "queued": ("circle-dashed", "stop", "Waits for a node to ask the model for its first turn."),
        "running": ("loader-circle", "run", "A turn or a call is queued, running or retrying."),
        "waiting": ("hand", "wait", "Nothing runs: it waits for a person."),
        "cancelling": (
            "octagon-pause",
            "wait",
            "Being stopped: it ends when every call of it has really stopped.",
        ),
        "COMPLETED": ("circle-check", "ok", "The agent finished."),
        "FAILED": ("x", "bad", "It ended without finishing; the reason says why."),
        "CANCELED": ("ban", "stop", "It was stopped, and every call of it has stopped."),
    },
    "call": {
        "held": ("hand", "wait", "Waits for a person's answer before it is sent."),
        "queued": ("clock", "stop", "Allowed, and waits for a node with a free slot."),
        "running": ("loader-circle", "run", "An attempt is being made."),
        "retrying": ("rotate-cw", "wait", "Waits for its next attempt."),
        "unknown": ("circle-question-mark", "unknown", "It may have acted; nobody knows. A person is asked."),
        "cancelling": ("octagon-pause", "wait", "Being stopped: its attempt has not ended yet."),
        "SUCCEEDED": ("check", "ok", "The tool answered."),
        "ERRORED": (
            "triangle-alert",
            "bad",
            "An error, and the model reads it: the tool's own, or ours.",
        ),
        "FAILED": ("x", "bad", "It ended without an answer of its tool; the reason says why."),
        "REFUSED": ("shield-x", "bad", "It was not allowed to run; the reason says why."),
        "CANCELED": ("ban", "stop", "It was stopped."),
        "HAPPENED": ("user-check", "ok", "Its outcome was unknown; a person checked and says it happened."),
    },
    "attempt": {
        "open": ("loader-circle", "run", "Being made now."),
        "answered": ("check", "ok", "The server answered."),
        "busy": ("hourglass", "wait", "The service was busy and did nothing."),
        "not_made": (
            "circle-minus",
            "stop",
            "Nothing was made: the request did not go out, or was refused before acting.",
        ),
        "timed_out": ("timer-off", "bad", "It ran past its limit."),
        "broken": ("unplug", "bad", "The connection or the server ended before an answer."),
        "unreadable": ("file-warning", "bad", "An answer came that cannot be read."),
        "lost": ("server-off", "bad", "Its end was never seen; the reason says why."),
        "stopped": ("ban", "stop", "It was stopped on request."),
    },
    "turn": {
        "asked": ("loader-circle", "run", "The model is being asked."),
        "answered": ("check", "ok", "The model answered."),
        "failed": ("x", "bad", "The model could not be asked."),
        "lost": ("server-off", "bad", "No answer came before its limit, or its node was lost; it is asked again."),
        "busy": ("hourglass", "wait", "The provider did not answer; it is asked again when its time has come."),
    },
    "session": {
        "starting": ("circle-dashed", "stop", "Waits for a node to start its program."),
        "running": ("loader-circle", "run", "Its program runs on a node."),
        "lost": ("server-off", "bad", "Its program was lost with its node."),
        "settling": ("hourglass", "wait", "Its program was lost; what it had called is waited for."),
        "asking": ("circle-question-mark", "unknown", "Its program was lost; a person says what becomes of it."),
        "ended": ("check", "ok", "Its program has ended."),
        "stopped": ("ban", "stop", "It was stopped with its job."),
    },
    "hold": {
        "open": ("hand", "wait", "Waits for a person."),
        "answered": ("user-check", "ok", "A person answered."),
        "withdrawn": ("undo-2", "stop", "No answer is needed any more."),
        "expired": ("hourglass", "stop", "Nobody answered in time."),
    },
    "ask": {
        "approve": ("hand", "wait", "May this call run?"),
        "retry": ("rotate-cw", "wait", "May this call be tried again?"),
        "unknown": ("circle-question-mark", "unknown", "Did this call happen?"),
        "session": ("server-off", "unknown", "What became of this session?"),
    },
    "node": {
        "alive": ("server", "ok", "It takes work."),
        "draining": ("hourglass", "wait", "It finishes what it has and takes nothing new."),
        "gone": ("server", "stop", "It stopped in order."),
        "lost": ("server-off", "bad", "It has not been heard of for 10 s."),
    },
    "server": {
        "up": ("server", "ok", "Its listing was read when a node last tried."),
        "down": ("server-off", "bad", "A node tried to read its listing and could not."),
        "new": ("hourglass", "wait", "No node has read its listing yet."),
    },
    "plugin": {
        "here": ("check", "ok", "It is in the catalog, and its servers can be listed."),
        "trouble": ("triangle-alert", "bad", "It is in the catalog, and something of it is to be mended."),
        "new": ("hourglass", "wait", "It is in the catalog, and no node has listed all of its servers yet."),
        "removed": ("circle-slash", "stop", "It was removed: nothing of it starts. Its name stays in the history."),
    },
    "effect": {
        "none": ("circle-minus", "stop", "Nothing was made: no request of it was acted on."),
        "made": ("check", "ok", "It was made: the server answered, or a person says that it happened."),
        "maybe": ("circle-question-mark", "unknown", "It may have acted: a request went out that nobody answered."),
    },
    "channel": {
        "on": ("check", "ok", "Notices go out to it."),
        "failing": ("rotate-cw", "wait", "The last tries failed; what is due is tried again."),
        "off": ("octagon-pause", "stop", "Nothing goes out to it."),
    },
    "starter": {
        "on": ("check", "ok", "It starts jobs."),
        "paused": ("octagon-pause", "wait", "A person paused it: it starts nothing."),
        "stopped": ("ban", "bad", "The studio stopped it, and says why."),
        "removed": ("circle-slash", "stop", "It was removed: it starts nothing."),
    },
    "arrival": {
        "started": ("play", "ok", "It started a job."),
        "unmapped": ("file-warning", "bad", "It does not give what the agent takes, and started nothing."),
        "refused": ("shield-x", "bad", "It started nothing; the reason says why."),
        "ignored": ("circle-minus", "stop", "It starts nothing by itself."),
    },
    "run": {
        "started": ("play", "ok", "A job was started."),
        "by_hand": ("play", "ok", "A person started its job."),
        "overlapped": ("circle-minus", "stop", "Skipped: a job that was started before still ran."),
        "missed": ("hourglass", "wait", "No node was up when it was due, and it does not catch up."),
        "refused": ("shield-x", "bad", "No job was started; the reason says why."),
    },
    "notice": {
        "due": ("clock", "wait", "It is to be sent, or to be tried again."),
        "sent": ("check", "ok", "Its receiver took it."),
        "carried": ("check", "ok", "It went out inside another one."),
        "failed": ("x", "bad", "It was tried for a day and given up."),
        "dropped": ("circle-minus", "stop", "It was not needed any more."),
    },
    "operation": {
        "running": ("loader-circle", "run", "It is being executed."),
        "finished": ("check", "ok", "Every check of it is completed: allowed or denied."),
        "interrupted": ("octagon-pause", "wait", "It ended before its last check; nothing resumes it."),
    },
    "item": {
        "completed": ("check", "ok", "Allowed."),
        "denied": ("shield-x", "bad", "Completed: it did not fit, and was denied."),
        "failed": ("x", "bad", "It provably had no effect."),
        "unattempted": ("circle-dashed", "stop", "Never begun."),
        "unknown": ("circle-question-mark", "unknown", "It may have had an effect; nobody knows."),
    },
    "amount": {
        "live": ("hourglass", "wait", "Reserved: its caller may spend it."),
        "in doubt": ("circle-question-mark", "unknown", "Nobody has confirmed it, and its request may have gone out."),
        "confirmed": ("check", "ok", "It is known what it cost."),
        "released": ("undo-2", "stop", "It was not spent, and is counted no more."),
        "lapsed": ("circle-minus", "stop", "Nobody confirmed it, and it is counted no more."),
        "expired": ("hourglass", "stop", "It was in doubt for a day, and is counted no more."),
    },
    "switch": {
        "kill": ("ban", "bad", "Nothing runs under it: what ran was stopped, what comes is refused."),
        "pause": ("octagon-pause", "wait", "Nothing starts under it: what ran ends by itself, what comes waits."),
        "lifted": ("undo-2", "stop", "It was turned off."),
    },
    "sign_in": {
        "out": ("circle-dashed", "stop", "Nobody is signed in: calls over it are not made."),
        "in": ("user-check", "ok", "Somebody is signed in; the token is refreshed before it runs out."),
        "expired": ("hourglass", "bad", "Its token has run out: calls over it are not made until it is refreshed."),
        "again": ("triangle-alert", "bad", "The sign-in is over: calls over it are not made until an admin signs in."),
    },
    "verdict": {
        "allow": ("check", "ok", "It runs, and nobody is asked."),
        "ask": ("hand", "wait", "A person must approve it first."),
        "refuse": ("shield-x", "bad", "It does not run."),
        "wait": ("clock", "run", "It begins later, when its rate has room again."),
    },
    "kind": {
        "read": ("eye", "stop", "It says it only reads."),
        "write": ("pencil", "run", "It says it writes and destroys nothing."),
        "destructive": ("triangle-alert", "bad", "It says it may destroy or overwrite."),
        "undeclared": (
            "circle-question-mark",
            "unknown",
            "It does not say what it does, so a person is asked.",
        ),
    },
}
WORDS: Final = {
    ("server", "new"): "not listed yet",
    ("plugin", "here"): "in the catalog",
    ("plugin", "trouble"): "to mend",
    ("plugin", "new"): "being listed",
    ("effect", "none"): "nothing made",
    ("effect", "made"): "made",
    ("effect", "maybe"): "may have acted",
    ("switch", "kill"): "stopped",
    ("switch", "pause"): "paused",
    ("ask", "unknown"): "did it happen?",
    ("ask", "retry"): "try again?",
    ("ask", "session"): "session lost",
    ("attempt", "not_made"): "not made",
    ("verdict", "allow"): "runs",
    ("verdict", "ask"): "asks",
    ("verdict", "refuse"): "refuses",
    ("verdict", "wait"): "waits",
    ("sign_in", "out"): "signed out",
    ("sign_in", "in"): "signed in",
    ("sign_in", "again"): "sign in again",
    ("sign_in", "expired"): "token ran out",
    ("attempt", "timed_out"): "timed out",
    ("run", "overlapped"): "skipped",
    ("arrival", "unmapped"): "not mapped",
    ("run", "refused"): "not started",
    ("run", "by_hand"): "by hand",
}
FALLBACK: Final = ("info", "stop", "")


def status(of: str, state: str) -> Status:
    """The look of a state; `of` is a job, call, attempt, turn, effect, hold, ask (a hold's kind), node,
    server, switch (its mode), channel, notice, sign_in, verdict (what a policy rule says) or kind (of a function)."""
    icon, tone, says = STATUSES[of].get(state, FALLBACK)
    return Status(icon, WORDS.get((of, state), state), tone, says)
