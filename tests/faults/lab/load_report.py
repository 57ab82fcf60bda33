"""A load's report as Markdown and JSON: what was done, what did not hold, and what grew."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tests.faults.lab.flatness import WARM_UP, Growth
from tests.faults.lab.samples import Sample, judged, shown

MOST_SHOWN = 50  # violations


@dataclass(slots=True)
class Load:
    """What a load did and what came of it. Rates are jobs a second."""

    seed: int
    minutes: float
    kill_every: float
    peak: float = 0.0
    asked: float = 0.0
    rate: float = 0.0
    jobs: int = 0
    skipped: int = 0
    most_open: int = 0
    calls: int = 0
    attempts: int = 0
    struck: int = 0
    paged: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    samples: list[tuple[float, Sample]] = field(default_factory=list)

    @property
    def growing(self) -> list[Growth]:
        """What grows."""
        return [one for one in judged(self.samples) if one.grows]

    @property
    def holds(self) -> bool:
        """Whether everything holds."""
        return not (self.violations or self.complaints or self.growing)


def write(load: Load, folder: Path) -> None:
    """Write `report.md` and `report.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(told(load) + "\n")
    (folder / "report.json").write_text(json.dumps(_as_json(load), indent=1) + "\n")


def _as_json(load: Load) -> dict[str, Any]:
    growths = [asdict(one) | {"grows": one.grows} for one in judged(load.samples)]
    return {one.name: getattr(load, one.name) for one in fields(load)} | {"judged": growths}


def told(load: Load) -> str:
    """The report for people."""
    results = judged(load.samples)
    grows = [one for one in results if one.grows]
    lines = [
        f"# Load, {load.minutes:g} minutes",
        "",
        f"The peak was {load.peak:.1f} jobs a second; {load.asked:.1f} were asked for and {load.rate:.1f} begun"
        f"{f' ({load.skipped:,} were due while too many were open)' if load.skipped else ''}; "
        f"at most {load.most_open:,} were open. {load.jobs:,} jobs with the peak's, {load.calls:,} calls, "
        f"{load.attempts:,} attempts; {load.struck:,} calls lost a node under them.",
        "",
        f"**{len(load.violations)} violations over all {load.calls:,} calls** (the pages of {load.paged}), "
        f"{len(load.complaints)} mistakes that processes made, {len(grows)} things that grow.",
        "",
        "## What lived for the whole run",
        "",
        f"From minute {WARM_UP / 60:.0f} on (a shorter run: its later half).",
        "",
        *_table(results),
        *(["", "Too short to judge growth by."] if results and not results[0].long_enough else []),
        "",
        "## Beside it, not judged",
        "",
        *_table(shown(load.samples)),
        "",
        "## What was done",
        "",
        *(f"- {name}: {count:,}" for name, count in sorted(load.counted.items())),
        "",
        "## How calls ended",
        "",
        *(f"- {name}: {count:,}" for name, count in sorted(load.ends.items())),
        "",
    ]
    for title, wrong in (("Violations", load.violations), ("What processes did wrong", load.complaints)):
        if wrong:
            lines += [f"## {title}", "", *(f"- {one}" for one in wrong[:MOST_SHOWN])]
            lines += [f"- and {len(wrong) - MOST_SHOWN:,} more"] if len(wrong) > MOST_SHOWN else []
    return "\n".join(lines)


def _table(results: list[Growth]) -> list[str]:
    lines = ["| what | at first | at last | mean | most | growth per hour | bound | |", f"|{'---|' * 8}"]
    for one in results:
        unit = f" {one.unit}" if one.unit and not one.name.endswith(one.unit) else ""
        words = "GROWS" if one.grows else ""
        lines.append(
            f"| {one.name}{unit} | {one.first:,.1f} | {one.last:,.1f} | {one.mean:,.1f} | {one.most:,.1f} | "
            f"{one.per_hour:+,.1f} | {one.bound:,.1f} | {words} |"
        )
    return lines
