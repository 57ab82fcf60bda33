"""Trials by the dozen, drawn from a seed.

python -m tests.faults.lab.chaos --minutes 30 --seed 7
python -m tests.faults.lab.chaos --seed 7 --only 41 --times 20
"""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from tests import clusters, conftest  # noqa: F401  the settings of tests

from django.test.utils import setup_test_environment  # isort: skip

from tests.faults.lab.draw import Trial, drawn
from tests.faults.lab.laboratory import a_laboratory
from tests.faults.lab.report import told, write
from tests.faults.stand import a_stand


def main() -> int:
    """Run, report, and fail when anything was violated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--side-by-side", type=int, default=24, help="trials at once")
    parser.add_argument("--every", type=float, default=0.3, help="seconds between two trials' beginnings")
    parser.add_argument("--only", type=int, help="the number of one trial, with nothing else happening")
    parser.add_argument("--trial", help="a trial of your own, as JSON, with nothing else happening")
    parser.add_argument("--times", type=int, default=1, help="how often, side by side")
    parser.add_argument("--report", type=Path, default=Path("chaos"), help="a folder")
    words = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was told to stop"))
    print(f"seed {words.seed}", flush=True)
    if words.trial:
        given = {"number": 0, "fault": "calm", "moment": "", "says": "truth", **json.loads(words.trial)}
        chosen = [Trial(**given)] * words.times
    else:
        chosen = [drawn(words.seed, words.only)] * words.times if words.only is not None else []
    setup_test_environment()
    clusters.begin()
    try:
        with tempfile.TemporaryDirectory(prefix="oz0-chaos-") as folder, a_stand(Path(folder)) as stand:
            with a_laboratory(stand, words.seed, many=words.nodes, steady=bool(chosen)) as laboratory:
                if chosen:
                    results = laboratory.repeat(chosen)
                else:
                    results = laboratory.run(words.minutes * 60, every=words.every, side_by_side=words.side_by_side)
                write(results, words.report)
    finally:
        clusters.forget()
    print(told(results))
    print(f"the report is in {words.report}/")
    return 1 if results.violations or results.complaints or results.counted["by itself"] else 0


if __name__ == "__main__":
    sys.exit(main())
