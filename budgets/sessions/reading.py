"""Lists of the journal, page by page, and finding a run by its name (RULES W5)."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from budgets.sessions.bounds import Bound, Stopped
from budgets.sessions.calls import Call, Failed, failed
from budgets.sessions.owner import Lost, Owner

MOST_ROWS: Final = 100  # of one page
FIRST_ROWS: Final = 20  # of a call's first: as large as rows can be they fit into any bound, so that each call gets on


@dataclass(slots=True)
class Pages:
    """One list and how far it was read. `cursor` is the first that was not; None is the beginning."""

    kind: str
    longest: int  # characters of a cursor
    cursor: str | None = None
    wanted: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    begun: bool = False

    async def read(self, owner: Owner) -> AsyncIterator[list[dict[str, Any]]]:
        """Each page, once it is complete. Raises `Failed`, and what `Owner.ask` raises but `Lost`."""
        refuse_long(self.cursor, self.longest)
        seen = {self.cursor}
        while not self.whole:
            rows, after = await self.page(owner)
            refuse_long(after, self.longest)
            self.cursor, self.whole = after, after is None
            yield rows
            if after is not None and after in seen:
                raise Failed("cursor_repeated", "The journal named a cursor twice: the list cannot be read to its end.")
            seen.add(after)

    async def page(self, owner: Owner) -> tuple[list[dict[str, Any]], str | None]:
        """The next one, and the cursor after it. Raises `Failed`."""
        most, self.begun = MOST_ROWS if self.begun else FIRST_ROWS, True
        query = {"limit": str(most), **self.wanted, **({"cursor": self.cursor} if self.cursor else {})}
        try:
            answer = await owner.ask("GET", f"{self.kind}?{urlencode(query)}", again=True, page=True)
        except Lost as error:
            raise Failed("read_failed", f"{error} Nothing was changed.") from error
        body = answer.body if answer.status == 200 and isinstance(answer.body, dict) else {}
        rows, after = body.get(self.kind), body.get("next")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise failed(answer, "read", reads=True)
        if after is not None and (not isinstance(after, str) or not after):
            raise failed(answer, "read", reads=True)
        return rows, after


class Listing(Call):
    """Rows of a list, from a cursor on, as many pages as a call may read. `run` is a name that is looked for first."""

    def __init__(self, pages: Pages, *, run: str | None = None) -> None:
        super().__init__()
        self.pages: Final = pages
        self.original: Final = pages.cursor
        self.taken: list[tuple[str | None, list[dict[str, Any]]]] = []  # pages, by the cursors that they were read by
        self.search = None if run is None else Search(run, pages.longest)
        self.recovery.cursor = pages.cursor

    async def work(self, owner: Owner) -> None:
        """Read on until the end. Raises `Failed`, and `Stopped` with what was read kept."""
        if self.search is not None:
            await self.search.work(owner)
            self.pages.wanted = {**self.pages.wanted, "run_id": str(self.search.one["run_id"])}
        async for rows in self.pages.read(owner):
            self.taken.append((self.recovery.cursor, rows))
            self.recovery.cursor = self.pages.cursor

    def data(self) -> Mapping[str, Any] | None:
        """The rows of complete pages."""
        run = {"run_id": self.pages.wanted["run_id"]} if "run_id" in self.pages.wanted else {}
        rows = [row for _, page in self.taken for row in page]
        return {**run, self.pages.kind: rows, "complete": self.pages.whole}

    def shorter(self) -> bool:
        """Without its last page, from which whoever reads on begins; never without its only one."""
        if len(self.taken) < 2:
            return False
        self.recovery.cursor, _ = self.taken.pop()
        self.pages.whole = False
        return True

    def left_out(self) -> None:
        """None of the rows was delivered: whoever reads on begins where this call did."""
        self.recovery.cursor = self.original


class OnePage(Call):
    """The next page of a list, for a command that reads as many as there are (RULES W6)."""

    def __init__(self, pages: Pages) -> None:
        super().__init__()
        self.pages: Final = pages
        self.rows: list[dict[str, Any]] = []

    async def work(self, owner: Owner) -> None:
        """One page. Raises `Failed`; a list that names the cursor it was read by goes nowhere."""
        rows, after = await self.pages.page(owner)
        if after is not None and after == self.pages.cursor:
            raise Failed("cursor_repeated", "The journal named a cursor twice: the list cannot be read to its end.")
        self.rows, self.pages.cursor, self.pages.whole = rows, after, after is None

    def data(self) -> Mapping[str, Any] | None:
        """The page."""
        return {self.pages.kind: self.rows, "complete": self.pages.whole}


class Search(Call):
    """The one run of a name, by reading the whole list of those that have it: a part of it proves nothing."""

    def __init__(self, name: str, longest: int, cursor: str | None = None) -> None:
        super().__init__()
        self.name: Final = name
        self.found: list[dict[str, Any]] = []
        self.pages: Final = Pages("runs", longest, cursor, {"name": name})
        self.from_start: Final = cursor is None
        self.original: Final = cursor
        self.recovery.cursor = cursor
        self.decided = False

    @property
    def one(self) -> Mapping[str, Any]:
        """The run, once it is decided."""
        return self.found[0]

    async def work(self, owner: Owner) -> None:
        """Raises `Failed` when there is none, or more than one, and as reading does."""
        async for rows in self.pages.read(owner):
            self.found += [row for row in rows if row.get("agent_run_id") == self.name and row.get("run_id")]
            self.recovery.cursor = self.pages.cursor
        if len(self.found) > 1:
            raise Failed("run_ambiguous", "More than one run has this name: take one by its run_id.")
        if not self.from_start:
            raise Failed("run_undecided", "Runs before the cursor were not looked at: the name may be there too.")
        if not self.found:
            raise Failed("run_not_found", "No run has this name.")
        self.decided = True

    def data(self) -> Mapping[str, Any] | None:
        """The run, or those that may be it."""
        if self.decided:
            return {"match": "unique", "run": dict(self.one), "candidates": []}
        told = "none" if self.pages.whole and self.from_start and not self.found else "undecided"
        return {"match": "ambiguous" if len(self.found) > 1 else told, "run": None, "candidates": self.found}

    def left_out(self) -> None:
        """As of a list."""
        self.recovery.cursor = self.original


class Exact(Call):
    """A run by the journal's own id, which needs no search."""

    def __init__(self, run_id: str, longest: int) -> None:
        super().__init__()
        self.run_id: Final = run_id
        self.pages: Final = Pages("usage", longest, wanted={"run_id": run_id, "limit": "1"})
        self.run: dict[str, Any] | None = None

    async def work(self, owner: Owner) -> None:
        """One page of one event of it. Raises `Failed` when there is none."""
        rows, _ = await self.pages.page(owner)
        for row in rows:
            if row.get("run_id") == self.run_id:
                self.run = {"run_id": self.run_id, "agent_run_id": row.get("agent_run_id")}
        if self.run is None:
            raise Failed("run_not_found", "No event is of a run with this run_id.")

    def data(self) -> Mapping[str, Any] | None:
        """The run."""
        return {"match": "unique" if self.run else "none", "run": self.run, "candidates": []}


def refuse_long(cursor: str | None, longest: int) -> None:
    """Raises `Stopped` for a cursor that is longer than one may be."""
    if cursor is not None and len(cursor) > longest:
        raise Stopped(Bound.CURSOR, f"A cursor has at most {longest} characters; this one has {len(cursor)}.")
