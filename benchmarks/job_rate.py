"""job-rate: durable calls of a running job, 16 at a time, on a stdio server; beside DBOS workflows of one step."""

import subprocess
from pathlib import Path
from typing import Final

from psutil import Process

from base import db
from benchmarks.echoing import services, use_echo
from benchmarks.figures import Figure, medians
from benchmarks.peers import interpreter
from jobs.models import Attempt
from tests.faults.stand import Services

TURNS: Final = 8
PARALLEL: Final = 16
CALLS: Final = TURNS * PARALLEL


def measure() -> Figure:
    """Calls a second of a running job, and what a workflow of one step a second is in DBOS on the same server."""
    with services() as stand:
        use_echo(stand, turns=TURNS, parallel=PARALLEL)
        node = stand.node()
        stand.until_listed()
        _job(stand)  # the first opens the session
        cpu: list[float] = []

        def ours() -> float:
            before = _seconds(node.pid)
            rate = _job(stand)
            cpu.append((_seconds(node.pid) - before) / CALLS * 1000)
            return rate

        stand.postgres.create_database("dbos")
        rate, peer = medians(ours, lambda: _workflows(stand.postgres.url("oz0_owner", "dbos")))
        profile = f"{sorted(cpu)[len(cpu) // 2]:.1f} ms of the node's CPU a call, the way to the server included"
    return Figure(
        "job-rate",
        rate,
        "calls/s",
        f"DBOS one-step workflows {peer:,.0f}/s",
        rate / peer,
        "≥ 1.0 ×",
        rate >= peer,
        profile,
    )


def _job(stand: Services) -> float:
    job = stand.start("echoer")
    stand.until_over(job, seconds=120)
    with db.read(stand.tenant):
        made = Attempt.objects.filter(job_id=job, state="answered").order_by("started_at")
        assert len(made) == CALLS, f"{len(made)} of {CALLS} calls were answered"
        took = max(one.ended_at for one in made if one.ended_at) - made[0].started_at
    return CALLS / took.total_seconds()


def _seconds(pid: int) -> float:
    used = Process(pid).cpu_times()
    return used.user + used.system


def _workflows(url: str) -> float:
    script = Path(__file__).parent / "peers" / "dbos_steps.py"
    words = [interpreter(), str(script), url, str(CALLS), str(PARALLEL)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[-1])
