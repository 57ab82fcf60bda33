"""Draws docs/states.md from the tables of jobs/rules/states.py: `make states` writes it, `make check` diffs it."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from jobs.rules import states
from tests.repo.tree import ROOT

PAGE: Final = ROOT / "docs" / "states.md"
MACHINES: Final = ("call", "job", "attempt", "hold", "session", "turn", "node")
OPENING: Final = """\
# States and moves

Drawn by `make states` from the tables in `jobs/rules/states.py`; `make check` fails when the two differ, so change the
tables and draw again. A move that is not here is impossible: one function writes each state, and it looks here first.

Small letters move; what no arrow leaves is final (calls and jobs write it in CAPITALS). What a state means to a person,
and which reasons stand beside it, is in [rules.md](rules.md).
"""

type Moves = Mapping[StrEnum, frozenset[StrEnum]]


def machine(name: str) -> tuple[type[StrEnum], Collection[StrEnum], Moves]:
    """The states, the starts and the moves of one machine, as `jobs/rules/states.py` has them."""
    words: type[StrEnum] = getattr(states, f"{name.capitalize()}State")
    return words, getattr(states, f"{name.upper()}_STARTS"), getattr(states, f"{name.upper()}_MOVES")


def page() -> str:
    """The whole page."""
    return "\n".join([OPENING, *(_section(name) for name in MACHINES)])


def _section(name: str) -> str:
    words, starts, moves = machine(name)
    order = list(words)
    arrows = [f"    [*] --> {start.value}" for start in order if start in starts]
    rows = []
    for old in order:
        targets = [new.value for new in order if new in moves.get(old, frozenset())]
        arrows += [f"    {old.value} --> {new}" for new in targets]
        if not targets:
            arrows.append(f"    {old.value} --> [*]")
        rows.append(f"| {old.value} | {' · '.join(targets) or '*final*'} |")
    begins = " · ".join(start.value for start in order if start in starts)
    return "\n".join(
        [
            f"## {name.capitalize()}",
            "",
            (words.__doc__ or "").strip(),
            "",
            "| from | to |",
            "|---|---|",
            f"| *new* | {begins} |",
            *rows,
            "",
            "```mermaid",
            "stateDiagram-v2",
            *arrows,
            "```",
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
