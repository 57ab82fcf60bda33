"""Faults on demand, for demonstrations and tests. A real server has nothing like this.

`drill.json` in the state folder is read at every call, so it can be changed while the server runs:

    {"functions": ["charge"], "wait_before": 2, "wait_after": 2, "busy": {"calls": 3, "retry_after": 1}}

`functions` says which functions it is about (all, when left out). `wait_before` and `wait_after` are seconds before and
after the effect. `busy` answers so many calls with "busy" and counts down; `retry_after` may be left out.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from billing_ledger import Ledger, append_durably


@dataclass(frozen=True)
class Drill:
    """What one call is to suffer. `busy` means: answer busy, and `retry_after` seconds when it is a number."""

    wait_before: float = 0
    wait_after: float = 0
    busy: bool = False
    retry_after: float | None = None


def begin(ledger: Ledger, function: str, key: str) -> Drill:
    """Note in `calls.jsonl` that a call arrived, and say what it is to suffer."""
    file = ledger.folder / "drill.json"
    with ledger.locked():
        append_durably(ledger.folder / "calls.jsonl", {"function": function, "key": key})
        wanted = _read(file)
        if function not in wanted.get("functions", [function]):
            return Drill()
        busy = wanted.get("busy") or {}
        left = busy.get("calls", 0)
        if left:
            busy["calls"] = left - 1
            fresh = file.with_suffix(".new")
            fresh.write_text(json.dumps(wanted))
            fresh.replace(file)
    return Drill(wanted.get("wait_before", 0), wanted.get("wait_after", 0), left > 0, busy.get("retry_after"))


def dies_now(ledger: Ledger, key: str) -> bool:
    """Whether a call that is told to end its server does so: only the first time it is made, so it can be run again."""
    deaths = ledger.folder / "deaths.jsonl"
    with ledger.locked():
        died = deaths.exists() and any(json.loads(line)["key"] == key for line in deaths.read_text().splitlines())
        if died and key:
            return False
        append_durably(deaths, {"key": key})
    return True


def _read(file: Path) -> dict[str, Any]:
    try:
        wanted: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return wanted
