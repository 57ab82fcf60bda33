"""The work that a switch is over, as counts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Covered:
    """Live calls by how they stand. `writing` are the running ones that are not read-only.

    `jobs` are those with such calls; of an agent or the whole tenant, every job that is not ending or over.
    """

    running: int = 0
    writing: int = 0
    stopping: int = 0
    waiting: int = 0
    held: int = 0
    unknown: int = 0
    jobs: int = 0
