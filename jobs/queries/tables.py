"""The tables that every call goes through, read and written by prepared statements (decision 8)."""

from typing import Final

from base.prepared import Table
from jobs.models import Attempt, Body, Call, Event, Hold, Job, Session, Turn

JOBS: Final = Table(Job)
TURNS: Final = Table(Turn)
SESSIONS: Final = Table(Session)
CALLS: Final = Table(Call)
BODIES: Final = Table(Body)
ATTEMPTS: Final = Table(Attempt)
HOLDS: Final = Table(Hold)
EVENTS: Final = Table(Event)
