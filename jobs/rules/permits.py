"""Why a person may not do a thing to a job: one text that guards the request and explains the button (STYLE 21)."""

from jobs.rules.states import JOB_FINAL, JobState

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
