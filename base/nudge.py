"""Nudges to open pages: "changed, seq 41", never content (STYLE 22)."""

from uuid import UUID


def job(tenant: UUID, job_id: UUID, seq: int) -> None:
    """Tell pages that show this job, or lists of the tenant's jobs, that its journal grew to `seq`."""
