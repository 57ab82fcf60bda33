"""What a plugin's servers say beside the protocol, as the author is told it (CASES I02)."""

from collections.abc import Mapping, Sequence

from catalog.rules.prints import printed_by, prints

TO_STDERR = "it came to standard output, where only the protocol may: print to stderr"


def grown(before: Sequence[str], now: Sequence[str]) -> Sequence[str]:
    """The lines at the end of `now` that were not in `before`. Both are the last of one growing log."""
    for start in range(len(before)):
        kept = len(before) - start
        if list(now[:kept]) == list(before[start:]):
            return now[kept:]
    return now


def place_of(line: str, files: Mapping[str, bytes]) -> str:
    """The source and line of the `print` that wrote a stray line, empty when that cannot be told."""
    found = printed_by(line, prints(files))
    return f"{found.file}:{found.line}" if found is not None else ""
