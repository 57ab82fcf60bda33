"""What is wrong with a plugin's files: each problem names file, line, key and fix."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to mend. `line` counts from 1 and is 0 when no line is meant; `key` is a path such as `tools[0].id`."""

    file: str
    line: int
    key: str
    message: str
    fix: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        key = f" {self.key}:" if self.key else ""
        return f"{where}:{key} {self.message}\n  fix: {self.fix}"


class BadPlugin(ValueError):
    """A plugin that cannot be taken. `problems` holds everything found, in the order of files and lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))
