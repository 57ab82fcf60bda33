"""Why a person may not do a thing to a job: one text that guards the request and explains the button (STYLE 21)."""

from jobs.rules.states import JOB_FINAL, CallState, JobState
from jobs.rules.why import Why

NEEDS_OPERATOR = "Your role here is viewer: an operator can do this."


def why_not_start(*, operator: bool) -> str | None:
    """Why this person may not start a job, or None."""
    return None if operator else NEEDS_OPERATOR


def why_not_stop(state: JobState, *, operator: bool, started_it: bool) -> str | None:
    """Why this person may not stop a job in this state, or None. The person who started a job may stop it."""
    if state in JOB_FINAL:
        return f"This job is {state} already."
    if state is JobState.CANCELLING:
        return "This job is being stopped already."
    return None if operator or started_it else NEEDS_OPERATOR


def may_ask_again(state: str, reason: str, *, attempts: int) -> bool:
    """Whether a call that waited for a person, and that nobody answered, may be asked for again (RULES A8).

    Its time was over, or that of its job.
    """
    expired = (state, reason) == (CallState.REFUSED, Why.EXPIRED)
    return expired or ((state, reason) == (CallState.CANCELED, Why.JOB_LIMIT) and attempts == 0)
