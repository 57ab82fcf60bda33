"""How far the estimate is from other tokenizers, over real definitions.

`python -m benchmarks.tokens LISTING.json…` takes files that hold a server's `tools/list` (its list of tools, or an
`oz0-listing.json`) and prints a table: what o200k_base counts, and how far other encodings are from it. docs/tokens.md
has the last one.
"""

import json
import statistics
import sys
from pathlib import Path

from base import tokens
from catalog.rules.estimates import Definition, as_sent

OTHERS = ("cl100k_base", "qwen3.5")


def definitions(path: Path) -> list[Definition]:
    """The definitions in one file, named as a tool of the file's name would be."""
    found = json.loads(path.read_text())
    listed = found if isinstance(found, list) else found["functions"]
    return [
        Definition(f"{path.stem}__{one['name']}", one.get("description") or "", one["inputSchema"]) for one in listed
    ]


def main() -> None:
    """Print the table."""
    every: dict[str, list[float]] = {other: [] for other in (*OTHERS, "length / 4")}
    print("| server | definitions | about (o200k_base) | cl100k_base | qwen3.5 | length / 4 |")
    print("|---|---|---|---|---|---|")
    count = 0
    for path in map(Path, sys.argv[1:]):
        texts = [as_sent(one) for one in definitions(path)]
        ours = tokens.counts(texts)
        counted = {other: tokens.counts(texts, encoding=other) for other in OTHERS}
        counted["length / 4"] = [len(text) // 4 for text in texts]
        count += len(texts)
        cells = []
        for other, figures in counted.items():
            every[other] += [abs(a - b) / b for a, b in zip(ours, figures, strict=True)]
            cells.append(f"{sum(figures):,} ({(sum(figures) - sum(ours)) / sum(ours):+.1%})")
        print(f"| {path.stem} | {len(texts)} | {sum(ours):,} | {' | '.join(cells)} |")
    print(f"\n{count} definitions, one by one: how far the estimate is from the other count\n")
    print("| other count | mean | 95 of 100 within | worst |\n|---|---|---|---|")
    for other, errors in every.items():
        errors.sort()
        p95 = errors[int(len(errors) * 0.95)]
        print(f"| {other} | {statistics.mean(errors):.1%} | {p95:.1%} | {errors[-1]:.1%} |")


if __name__ == "__main__":
    main()
