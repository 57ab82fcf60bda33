"""Since when and by what a job is tainted (RULES M3). Demands an open read."""

from dataclasses import dataclass
from datetime import datetime

from base import ids
from jobs.models import Event, Job


@dataclass(frozen=True, slots=True)
class Taint:
    """That a job read another plugin's manual: the first one, `<plugin>/<skill>`, and the call that read it."""

    at: datetime
    skill: str
    shown_call: str

    @property
    def plugin(self) -> str:
        """The plugin whose manual it is."""
        return self.skill.partition("/")[0]

    @property
    def name(self) -> str:
        """The skill's name in that plugin."""
        return self.skill.partition("/")[2]


def taint_of(job: Job) -> Taint | None:
    """The job's taint, or None."""
    if job.tainted_at is None:
        return None
    call = Event.objects.filter(job=job, kind="job.tainted").values_list("call", flat=True).first()
    return Taint(job.tainted_at, job.tainted_by, ids.show(ids.CALL, call) if call else "")
