"""What started a job, as every page and the audit log say it: a person, or what stands for one (RULES G1)."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from base import ids
from jobs.models import Job, Starter

WITH: Final = ("started_by", "start_token", "token", "routine", "hook")  # what a query of jobs reads with them


@dataclass(frozen=True, slots=True)
class Started:
    """`by` is token, routine or hook, what `name` is the name of; empty where a person started it on a page.

    `shown_id` is of a routine or hook. The job counts as `person`'s, whatever started it (RULES A10).
    """

    starter: str
    person: str
    by: str = ""
    name: str = ""
    shown_id: str = ""
    token_id: UUID | None = None  # where `by` is token

    @property
    def by_a_person(self) -> bool:
        """Whether somebody was there."""
        return self.starter == Starter.PERSON

    @property
    def in_words(self) -> str:
        """One line of plain text, with names as they were given."""
        what = {"token": "token", "routine": "routine", "hook": "an event at hook"}.get(self.by, "")
        if not what:
            return self.person if self.by_a_person else f"{self.starter.replace('_', ' ')}, for {self.person}"
        if self.by_a_person:
            return f"{self.person}, {'running' if self.by == 'routine' else 'with'} {what} {self.name}"
        return f"{what} {self.name}, for {self.person}"


def started(job: Job) -> Started:
    """What started a job that was read along with `WITH`. Demands an open read or write of its tenant."""
    person = job.started_by.get_username() if job.started_by else ""
    if job.routine is not None:
        shown = ids.show(ids.ROUTINE, job.routine.pk)
        return Started(job.starter, person, "routine", job.routine.name, shown)
    if job.hook is not None:
        return Started(job.starter, person, "hook", job.hook.name, ids.show(ids.HOOK, job.hook.pk))
    token = job.start_token or job.token  # of an outside client's job: what that calls with
    if token is not None:
        return Started(job.starter, person, "token", token.name, token_id=token.pk)
    return Started(job.starter, person)
