"""What lint and the studio find in a plugin: a code that never changes its meaning, a place, and the fix."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """An error fails lint, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. `line` counts from 1 and is 0 when no line is meant."""

    severity: Severity
    code: str
    file: str
    line: int
    key: str
    message: str
    fix: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        key = f"{self.key}: " if self.key else ""
        return f"{self.severity}[{self.code}]: {where}: {key}{self.message}\n  fix: {self.fix}"

    def as_json(self) -> dict[str, Any]:
        """The same for a program."""
        return asdict(self)
