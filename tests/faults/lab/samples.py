"""What a studio's processes and tables measure at one moment, and the series that many moments make."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import psutil
import psycopg

from tests.faults.lab.flatness import Growth, growth

MB: Final = 1024 * 1024
# Shared buffers are mapped by every process of PostgreSQL and fill up to their size: only what is its own can leak.
OWN: Final = "PostgreSQL"
JUDGED: Final = {
    "surviving node": "RSS",
    "its server": "RSS",
    "web": "RSS",
    OWN: "USS",
    "broker": "RSS",
}
TABLES: Final = {
    "jobs open": "SELECT count(*) FROM jobs_job WHERE ended_at IS NULL",
    "calls due": "SELECT count(*) FROM jobs_call WHERE due_at IS NOT NULL",
    "attempts open": "SELECT count(*) FROM jobs_attempt WHERE ended_at IS NULL",
    "turns open": "SELECT count(*) FROM jobs_turn WHERE state = 'asked'",
    "holds open": "SELECT count(*) FROM jobs_hold WHERE closed_at IS NULL",
    "nodes alive": "SELECT count(*) FROM jobs_node WHERE state IN ('alive', 'draining')",
}
DATABASE: Final = {
    "connections": "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
    "dead rows": "SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables",
    "database MB": f"SELECT pg_database_size(current_database()) / {MB}.0",
}

type Sample = dict[str, float]


def taken(processes: Mapping[str, Iterable[psutil.Process]], admin: "psycopg.Connection[Any]") -> Sample:
    """Measure now: megabytes, open files and threads of each kind of process, rows and connections of the database."""
    sample: Sample = {}
    for kind, found in processes.items():
        for name in ("processes", "RSS", "USS", "files", "threads"):
            sample[f"{kind}: {name}"] = 0.0
        for process in found:
            try:
                with process.oneshot():
                    memory = process.memory_full_info()
                    measured = {"RSS": memory.rss / MB, "USS": memory.uss / MB, "processes": 1.0}
                    measured |= {"files": float(process.num_fds()), "threads": float(process.num_threads())}
            except psutil.NoSuchProcess:  # it has just ended
                continue
            for name, value in measured.items():
                sample[f"{kind}: {name}"] += value
    for name, query in (TABLES | DATABASE).items():
        row = admin.execute(query).fetchone()
        assert row is not None
        sample[name] = float(row[0])
    return sample


def judged(samples: list[tuple[float, Sample]]) -> list[Growth]:
    """The memory, open files and threads of everything that lived for the whole run, and the connections."""
    names = [(f"{kind}: {measure}", "MB") for kind, measure in JUDGED.items()]
    names += [(f"{kind}: {what}", "") for kind in JUDGED if kind != OWN for what in ("files", "threads")]
    names += [("connections", ""), *((name, "") for name in TABLES)]
    return [growth(name, _series(name, samples), unit=unit) for name, unit in names]


def shown(samples: list[tuple[float, Sample]]) -> list[Growth]:
    """What is worth seeing beside it, and may grow: history is kept, and shared buffers fill."""
    also = [f"{kind}: {measure}" for kind in JUDGED for measure in ("RSS", "USS") if JUDGED[kind] != measure]
    also += ["other nodes: RSS", "their servers: RSS", "database MB"]
    found = [growth(name, _series(name, samples)) for name in also]
    return [*found, growth("dead rows", _series("dead rows", samples), unit="")]


def _series(name: str, samples: list[tuple[float, Sample]]) -> list[tuple[float, float]]:
    return [(second, sample[name]) for second, sample in samples]
