"""Lists that are shown a page at a time, by number."""

from dataclasses import dataclass
from typing import Final

A_PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class Paged[Row]:
    """One page of a list: its rows, of how many that were found, and its number from 1."""

    rows: tuple[Row, ...]
    found: int
    page: int

    @property
    def first(self) -> int:
        """The place of the first row, from 1."""
        return (self.page - 1) * A_PAGE + 1

    @property
    def last(self) -> int:
        """The place of the last row."""
        return self.first + len(self.rows) - 1

    @property
    def more(self) -> bool:
        """Whether there is a page after it."""
        return self.last < self.found


def page_within(page: int, found: int) -> int:
    """This page's number, or past the end the last one's."""
    return max(1, min(page, -(-found // A_PAGE)))
