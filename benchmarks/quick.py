"""`make bench-quick`: the figures that fit into four minutes, as a table, kept in benchmarks/results.json."""

import os
import sys
import time
from contextlib import redirect_stdout

os.environ.setdefault("OZ0_SECRET_KEY", "for benchmarks only")
os.environ.setdefault("DATABASE_URL", "postgres://nobody@/nowhere?host=/nonexistent")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:1/0")
os.environ.setdefault("BROKER_URL", "redis://127.0.0.1:1/0")

import django

django.setup()

from benchmarks import gateway, job_rate, lost_node, start, state_writes, trace_page  # noqa: E402  - Django comes first
from benchmarks.figures import Figure, keep, table  # noqa: E402
from tests import clusters  # noqa: E402


def main() -> None:
    """Measure, one figure after the other, since two at once would measure each other."""
    began = time.monotonic()
    figures: list[Figure] = []
    clusters.begin()
    try:
        for name, measure in (
            ("start, memory", start.measure),
            ("job-rate", job_rate.measure),
            ("gateway-added", gateway.measure),
            ("state-writes", state_writes.measure),
            ("lost-node", lost_node.measure),
            ("trace-page", trace_page.measure),
        ):
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            with redirect_stdout(sys.stderr):  # the nodes' logs
                found = measure()
            figures += found if isinstance(found, list) else [found]
    finally:
        clusters.forget()
    keep(figures)
    print(table(figures))
    print(f"\n{time.monotonic() - began:.0f} s; kept in benchmarks/results.json")


if __name__ == "__main__":
    main()
