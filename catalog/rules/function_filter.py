"""Which functions a list shows, and in which order, as its address says it."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from catalog.rules.kinds import Kind

MOST_WORDS: Final = 6
LONGEST: Final = 200  # characters of one part of the address
TOKENS_MOST: Final = 1_000_000


class Order(StrEnum):
    """What the rows of a list stand by."""

    NAME = "name"
    TOKENS = "tokens"  # the biggest first
    KIND = "kind"  # what may destroy first
    PLUGIN = "plugin"


KINDS_FIRST: Final = {Kind.DESTRUCTIVE: 0, Kind.UNDECLARED: 1, Kind.WRITE: 2, Kind.READ: 3}


@dataclass(frozen=True, slots=True)
class FunctionFilter:
    """Everything empty shows all. `fares` is what becomes of its calls by the policy, `findings` a code of lint or
    `any`, `over` a number of tokens, `agent` one that it is granted to."""

    q: str = ""
    kind: str = ""
    tool: str = ""
    plugin: str = ""
    agent: str = ""
    fares: str = ""
    findings: str = ""
    over: int = 0
    sort: Order = Order.NAME

    @property
    def words(self) -> tuple[str, ...]:
        """What is searched for: each of them must be somewhere."""
        return tuple(dict.fromkeys(self.q.lower().split()))[:MOST_WORDS]

    @property
    def narrows(self) -> bool:
        """Whether it leaves anything out."""
        return any(getattr(self, one.name) for one in fields(self) if one.name != "sort")

    @property
    def asked(self) -> dict[str, str]:
        """The parts that are set, as they stand in an address."""
        found = {one.name: str(getattr(self, one.name)) for one in fields(self) if getattr(self, one.name)}
        if self.sort is Order.NAME:
            del found["sort"]
        return found
