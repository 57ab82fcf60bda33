"""Statements written by hand and prepared once a connection, for what every call pays (decision 8).

The ORM builds a statement anew each time, which costs many times what the statement does. Here its text is made
once, and PostgreSQL keeps its plan with the connection. Columns are named, never `*`, so that a plan outlives a
migration which adds one. All of it runs on Django's connection, in the transaction that `base/db.py` opened.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Final

import psycopg
from django.db import connection, models

KEPT: Final = 200  # statements that a connection keeps; with a null or a wider number in it, one counts again
TOGETHER: Final = 20  # rows that one statement writes at most

type Values = Sequence[Any]


def fetch(sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement. JSON comes as text."""
    return _executed(sql, values).fetchall()


def fetch_one(sql: str, values: Values = ()) -> tuple[Any, ...] | None:
    """The first row of a statement, or None. JSON comes as text."""
    return _executed(sql, values).fetchone()


def change(sql: str, values: Values = ()) -> int:
    """Run a statement that returns no rows; how many it changed."""
    return _executed(sql, values).rowcount


class Table[Row: models.Model]:
    """A model's table: its rows as instances of the model, read and written without the ORM."""

    def __init__(self, model: type[Row]) -> None:
        self.model: Final = model
        self._updates: Final[dict[tuple[tuple[str, ...], str], str]] = {}

    def columns(self, alias: str) -> str:
        """What a `SELECT` names to be read by `row`, in the table's order."""
        return ", ".join(f'{alias}."{field.column}"' for field in self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def row(self, values: Values) -> Row:
        """The instance for one row of `columns`."""
        filled = list(values)
        for place in self._json:
            if filled[place] is not None:
                filled[place] = json.loads(filled[place])
        return self.model.from_db(connection.alias, self._names, filled)

    def get(self, key: Any, rest: str = "", values: Values = ()) -> Row | None:
        """The row of this primary key, or None. `rest` adds conditions and a lock."""
        found = fetch_one(self._select + rest, [key, *values])
        return None if found is None else self.row(found)

    def insert(self, *rows: Row) -> None:
        """Write new rows."""
        for first in range(0, len(rows), TOGETHER):
            some = rows[first : first + TOGETHER]
            change(self._insert(len(some)), [value for row in some for value in self._values_of(row)])
        for row in rows:
            row._state.adding, row._state.db = False, connection.alias

    def update(self, key: Any, fields: Mapping[str, Any], guard: str = "", values: Values = ()) -> bool:
        """Set columns of one row, by the names of their fields; False when there is none for which `guard` holds."""
        names = tuple(fields)
        sql = self._updates.get((names, guard))
        if sql is None:
            meta = self.model._meta
            sets = ", ".join(f'"{self._columns[name]}" = %s' for name in names)
            where = f'"{meta.pk.column}" = %s' + (f" AND {guard}" if guard else "")
            sql = self._updates[names, guard] = f'UPDATE "{meta.db_table}" SET {sets} WHERE {where}'  # noqa: S608 - only names of ours
        given = [self._given(name, value) for name, value in fields.items()]
        return change(sql, [*given, key, *values]) == 1

    # --- inside --------------------------------------------------------------------------------------------------

    @cached_property
    def _fields(self) -> "list[models.Field[Any, Any]]":
        return list(self.model._meta.concrete_fields)

    @cached_property
    def _names(self) -> list[str]:
        return [field.attname for field in self._fields]

    @cached_property
    def _json(self) -> list[int]:
        return [place for place, field in enumerate(self._fields) if isinstance(field, models.JSONField)]

    @cached_property
    def _columns(self) -> dict[str, str]:
        """The column of each field, by the name of the field and by that of its attribute."""
        return {name: str(field.column) for field in self._fields for name in (field.name, field.attname)}

    @cached_property
    def _of_json(self) -> frozenset[str]:
        return frozenset(self._names[place] for place in self._json)

    @cached_property
    def _select(self) -> str:
        meta = self.model._meta
        return f'SELECT {self.columns("t")} FROM "{meta.db_table}" t WHERE t."{meta.pk.column}" = %s '  # noqa: S608 - only names of ours

    @cache  # noqa: B019 - a table lives as long as its process
    def _insert(self, rows: int) -> str:
        names = ", ".join(f'"{field.column}"' for field in self._fields)
        marks = f"({', '.join(['%s'] * len(self._fields))})"
        return f'INSERT INTO "{self.model._meta.db_table}" ({names}) VALUES {", ".join([marks] * rows)}'  # noqa: S608 - only names of ours

    def _given(self, name: str, value: Any) -> Any:
        if isinstance(value, models.Model):
            return value.pk
        return _dumped(value) if name in self._of_json else value

    def _values_of(self, row: Row) -> list[Any]:
        values = [getattr(row, name) for name in self._names]
        for place in self._json:
            values[place] = _dumped(values[place])
        return values


def _dumped(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _executed(sql: str, values: Values) -> "psycopg.Cursor[tuple[Any, ...]]":
    raw = connection.connection
    if raw is None or not connection.in_atomic_block:
        raise RuntimeError("this needs a transaction: call it inside `db.write`, `db.read` or `db.sweep`")
    if raw.prepare_threshold is None:  # Django's own cursors prepare nothing, whatever this says
        raw.prepare_threshold, raw.prepared_max = 0, KEPT
    with connection.wrap_database_errors:
        return psycopg.Cursor(raw).execute(sql, values)
