"""A run of the lab as Markdown and JSON: trials by fault and class, what struck nodes, and every violation."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.faults.lab.classes import KINDS, SERVERS
from tests.faults.lab.laboratory import Done, Results


def write(results: Results, folder: Path) -> None:
    """Write `report.md` and `report.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(told(results) + "\n")
    (folder / "report.json").write_text(json.dumps(as_json(results), indent=1, default=str) + "\n")


def told(results: Results) -> str:
    """The report for people."""
    many, minutes = len(results.done), results.seconds / 60
    bad = results.violations
    lines = [
        f"# Fault lab, seed {results.seed}",
        "",
        f"{many} trials in {minutes:.1f} minutes ({many / max(minutes, 0.01):.0f} a minute), "
        f"{sum(done.attempts for done in results.done)} attempts. "
        f"**{len(bad)} violations, {len(results.complaints)} mistakes that nodes logged.**",
        "",
        *_table("Trials by fault and class", _by_fault(results.done), list(KINDS)),
        *_table("Trials by server and class", _by_server(results.done), list(KINDS)),
        *_list("Nodes and commits", dict(sorted(results.counted.items()))),
        *_list("How calls ended", _ends(results.done)),
    ]
    if bad:
        lines += ["## Violations", ""]
        lines += [f"- {done.trial}\n  - {wrong}\n  - {_how(results, done)}" for done, wrong in bad]
    if results.complaints:
        lines += ["## What nodes logged", "", *(f"```\n{text}\n```" for text in results.complaints)]
    return "\n".join(lines)


def _how(results: Results, done: Done) -> str:
    hit = f", struck by {', '.join(sorted(done.hit))}" if done.hit else ""
    again = f"python -m tests.faults.lab.chaos --seed {results.seed} --only {done.trial.number} --times 10"
    return f"ended {done.state} with effect {done.effect} after {done.attempts} attempts{hit}; again: `{again}`"


def family(fault: str) -> str:
    """A fault's name without its figure."""
    return fault.partition(":")[0]


def _by_fault(done: list[Done]) -> dict[str, Counter[str]]:
    table: dict[str, Counter[str]] = {}
    for one in done:
        name = f"{one.trial.fault} at {one.trial.moment}" if one.trial.moment else family(one.trial.fault)
        table.setdefault(name, Counter())[one.trial.function] += 1
    return dict(sorted(table.items()))


def _by_server(done: list[Done]) -> dict[str, Counter[str]]:
    return {server: Counter(one.trial.function for one in done if one.trial.server == server) for server in SERVERS}


def _ends(done: list[Done]) -> dict[str, int]:
    ends = Counter(f"{one.state}, effect {one.effect}" for one in done)
    return dict(ends.most_common())


def _table(title: str, rows: dict[str, Counter[str]], columns: list[str]) -> list[str]:
    head = ["", *columns, "all"]
    lines = [f"## {title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, counts in rows.items():
        cells = [str(counts[column] or "") for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} | {counts.total()} |")
    return [*lines, ""]


def _list(title: str, counts: dict[str, int]) -> list[str]:
    return [f"## {title}", "", *(f"- {name}: {count}" for name, count in counts.items()), ""]


def as_json(results: Results) -> dict[str, Any]:
    """The report for programs; trials with violations carry their whole evidence."""
    return {
        "seed": results.seed,
        "seconds": round(results.seconds, 1),
        "counted": dict(results.counted),
        "complaints": results.complaints,
        "trials": [
            {
                **asdict(done.trial),
                "state": done.state,
                "effect": done.effect,
                "attempts": done.attempts,
                "seconds": round(done.seconds, 2),
                "hit": sorted(done.hit),
                "violations": [str(wrong) for wrong in done.violations],
                **({"evidence": asdict(done.evidence)} if done.violations else {}),
            }
            for done in results.done
        ],
    }
