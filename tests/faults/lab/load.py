"""An hour of load at 70 % of what the machine can do, with a node killed each minute.

python -m tests.faults.lab.load --minutes 60 --kill-every 60
"""

import argparse
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

from tests import clusters, conftest  # noqa: F401  the settings of tests

from django.test.utils import setup_test_environment  # isort: skip

import psycopg
from django.conf import settings
from django.test import Client

from tenants.models import User
from tests.faults.lab import bulk, samples
from tests.faults.lab.load_report import Load, told, write
from tests.faults.lab.load_stand import LoadStand, a_load_stand
from tests.faults.lab.load_work import AT_ONCE, Work
from tests.faults.lab.onlookers import Onlookers
from tests.faults.stand import a_stand
from tests.waiting import until

SHARE: Final = 0.7  # of the peak
OPEN_AT_PEAK: Final = 64  # jobs
WARM_UP: Final = 20.0  # seconds before the peak counts
OPEN_SECONDS: Final = 30.0  # a backlog of more than so many seconds' jobs is not made longer
SAMPLE_EVERY: Final = 10.0
TEND_EVERY: Final = 0.5
SETTLE: Final = 300.0  # seconds in which everything comes to its end
PAGES_OF: Final = 200  # calls that more happened to, whose pages are looked at


def main() -> int:
    """Run, report, and fail when an invariant is broken or something grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--kill-every", type=float, default=60.0, help="seconds")
    parser.add_argument("--nodes", type=int, default=3, help="one of them is never killed")
    parser.add_argument("--peak", type=float, default=75.0, help="seconds in which the peak is measured")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--report", type=Path, default=Path("load"), help="a folder")
    words = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was told to stop"))
    setup_test_environment()
    clusters.begin()
    try:
        with tempfile.TemporaryDirectory(prefix="oz0-load-") as folder, a_stand(Path(folder)) as stand:
            layer = settings.CHANNEL_LAYERS["default"]["CONFIG"]["hosts"][0]
            layer["address"] = stand.broker.url  # what the driver begins and answers is told to open pages, too
            with a_load_stand(stand, others=words.nodes - 1) as load:
                found = run(load, words)
                write(found, words.report)  # before anything is taken down
    finally:
        clusters.forget()
    print(told(found))
    print(f"the report is in {words.report}/")
    return 0 if found.holds else 1


def run(load: LoadStand, words: argparse.Namespace) -> Load:
    """Measure the peak, hold the load, settle, and look at all that came of it."""
    stand = load.stand
    work = Work(load, Random(words.seed))
    client = Client()
    client.force_login(User.objects.get(pk=stand.person))
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    onlookers = Onlookers(load.port, cookie, work)
    found = Load(seed=words.seed, minutes=words.minutes, kill_every=words.kill_every)
    with onlookers.looking():
        found.peak = peak(load, work, words.peak)
        found.asked = SHARE * found.peak
        print(f"the peak is {found.peak:.1f} jobs a second; {found.asked:.1f} are held", flush=True)
        before = work.begun
        held = hold(load, work, found, found.asked, words)
        found.rate = (work.begun - before) / held
        found.skipped = work.skipped
        work.settle(SETTLE)
        found.complaints = [*load.complaints(), *onlookers.troubles]
    found.counted = load.counted + work.counted + onlookers.counted
    judge(load, work, found, client)
    return found


def peak(load: LoadStand, work: Work, seconds: float) -> float:
    """Jobs that end in a second while as many as can be made at once are open."""
    ends = time.monotonic() + WARM_UP + seconds
    while time.monotonic() < ends:
        work.tend()
        for _ in range(OPEN_AT_PEAK - work.open()):
            work.begin()
        _rest(0.1)
    rate = work.ended_within(seconds) / seconds
    until(lambda: work.open() < OPEN_AT_PEAK / 4, "the jobs of the peak never ended", SETTLE)
    return rate


def hold(load: LoadStand, work: Work, found: Load, rate: float, words: argparse.Namespace) -> float:
    """Begin jobs at this rate whatever becomes of them, kill, answer, sample; the seconds it took."""
    most = max(OPEN_AT_PEAK, rate * OPEN_SECONDS)
    began = time.monotonic()
    ends = began + words.minutes * 60
    next_at, kill_at, sample_at, tend_at = began, began + words.kill_every, began, began
    open_ = 0
    with psycopg.connect(load.stand.postgres.url_admin, autocommit=True) as admin:
        while (now := time.monotonic()) < ends:
            if now >= tend_at:
                tend_at = now + TEND_EVERY
                load.tend()
                work.tend()
                open_ = work.open()
                found.most_open = max(found.most_open, open_)
            for _ in range(AT_ONCE):
                if next_at > now:
                    break
                next_at += 1 / rate
                if open_ < most:
                    work.begin()
                    open_ += 1
                else:
                    work.skipped += 1
            if now >= kill_at:
                kill_at += words.kill_every
                load.kill_one()
            if now >= sample_at:
                sample_at += SAMPLE_EVERY
                found.samples.append((now - began, samples.taken(load.processes(), admin)))
            _rest(min(0.05, max(0.0, next_at - time.monotonic())))
    return time.monotonic() - began


def judge(load: LoadStand, work: Work, found: Load, client: Client) -> None:
    """Every invariant of every call, then of the run as a whole."""
    ledger = bulk.read_ledger(load.ledger)
    found.jobs = work.begun
    keys: set[str] = set()
    paged = 0
    for job, call, bare in bulk.evidence(load.stand.tenant, ledger):
        seen = bare
        if paged < PAGES_OF and bulk.telling(bare):
            paged += 1
            seen = bulk.with_pages(bare, client, job, call)
        keys.add(seen.key)
        found.calls += 1
        found.attempts += len(seen.attempts)
        found.ends[f"{seen.trial.function}: {seen.state}, effect {seen.effect}"] += 1
        found.struck += any(attempt.reason == "node_lost" for attempt in seen.attempts)
        found.violations += [f"{call} ({seen.trial.function}): {wrong}" for wrong in bulk.broken_in(seen)]
    found.paged = paged
    found.violations += bulk.broken_overall(load.stand.postgres.url_admin, begun=work.begun, keys=keys, ledger=ledger)


def _rest(seconds: float) -> None:
    select.select([], [], [], seconds)


if __name__ == "__main__":
    sys.exit(main())
