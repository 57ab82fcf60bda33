"""How far a job's journal has come: what a rendered page is compared with."""

from uuid import UUID

from base import db
from jobs.models import JobCounter


def newest_event(tenant: UUID, job_id: UUID) -> int | None:
    """The number of the job's newest event; None when this tenant has no such job."""
    with db.read(tenant):
        return JobCounter.objects.filter(job_id=job_id).values_list("events", flat=True).first()
