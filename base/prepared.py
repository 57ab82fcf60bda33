"""Statements written by hand and prepared once a connection, for what every call pays (decision 8).

The ORM builds a statement anew each time, which costs many times what the statement does. Here its text is made
once, and PostgreSQL keeps its plan with the connection. Columns are named, never `*`, so that a plan outlives a
migration which adds one. All of it runs on Django's connection, in the transaction that `base/db.py` opened.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.base import ModelState
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer

TOGETHER: Final = 20  # rows that one statement writes at most

_ALL: Final = sys.maxsize
_WELL: Final = frozenset({pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK})

type Values = Sequence[Any]


def fetch(sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement. JSON comes as text."""
    django = _django()
    with django.wrap_database_errors:
        kept = _kept_by(django)
        return kept.rows(kept.run(sql, values), _ALL)


def fetch_one(sql: str, values: Values = ()) -> tuple[Any, ...] | None:
    """The first row of a statement, or None. JSON comes as text."""
    django = _django()
    with django.wrap_database_errors:
        kept = _kept_by(django)
        rows = kept.rows(kept.run(sql, values), 1)
    return rows[0] if rows else None


def change(sql: str, values: Values = ()) -> int:
    """Run a statement that returns no rows; how many it changed."""
    django = _django()
    with django.wrap_database_errors:
        return _kept_by(django).run(sql, values).command_tuples or 0


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
        # as `from_db` does it, without the signals and descriptors that make up most of an instance's cost
        row = self.model.__new__(self.model)
        row.__dict__.update(zip(self._names, filled, strict=True))
        return _kept_in_the_database(row)

    def new(self, **values: Any) -> Row:
        """A row to be inserted, by the attributes of its columns; those left out are as the model says."""
        row = self.model.__new__(self.model)
        row.__dict__.update({name: make() for name, make in self._made_anew.items() if name not in values})
        row.__dict__.update(self._as_usual | values)
        row._state = ModelState()
        return row

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
            row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS

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
    def _made_anew(self) -> dict[str, Callable[[], Any]]:
        """Defaults that are made for each row."""
        return {field.attname: field.default for field in self._fields if _is_made(field)}

    @cached_property
    def _as_usual(self) -> dict[str, Any]:
        """Every other default."""
        return {field.attname: field.get_default() for field in self._fields if field.attname not in self._made_anew}

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


def _kept_in_the_database[Row: models.Model](row: Row) -> Row:
    state = row._state = ModelState()
    state.adding, state.db = False, DEFAULT_DB_ALIAS
    return row


def _is_made(field: "models.Field[Any, Any]") -> bool:
    return field.has_default() and callable(field.default)


def _dumped(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


class _Kept:
    """What a connection has prepared. Values go and come as text, so PostgreSQL infers the types of a statement."""

    def __init__(self, raw: "psycopg.Connection[Any]") -> None:
        self.connection: Final = raw
        self._server: Final = raw.pgconn
        self._adapt: Final = Transformer(raw)
        self._names: Final[dict[str, bytes]] = {}

    def run(self, sql: str, values: Values) -> pq.abc.PGresult:
        """Run a statement; what came of it. Raises psycopg's errors."""
        if self._server.transaction_status == pq.TransactionStatus.IDLE:
            _checked(self._server.exec_(b"BEGIN"))
        name = self._names.get(sql) or self._prepare(sql)
        given = self._adapt.dump_sequence(values, [PyFormat.TEXT] * len(values))
        return _checked(self._server.exec_prepared(name, given))  # type: ignore[arg-type]  # None is null

    def rows(self, result: pq.abc.PGresult, most: int) -> list[tuple[Any, ...]]:
        """The first rows of what came."""
        self._adapt.set_pgresult(result)
        return self._adapt.load_rows(0, min(result.ntuples, most), tuple)

    def _prepare(self, sql: str) -> bytes:
        first, *rest = sql.split("%s")
        numbered = first + "".join(f"${place}{part}" for place, part in enumerate(rest, 1))
        name = f"oz0_{len(self._names)}".encode()
        _checked(self._server.prepare(name, numbered.encode()))
        self._names[sql] = name
        return name


_kept: Final[WeakKeyDictionary[BaseDatabaseWrapper, _Kept]] = WeakKeyDictionary()


def _checked(result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status in _WELL:
        return result
    if result.error_field(pq.DiagnosticField.SQLSTATE) is None:  # said by the client's side: the server is gone
        raise psycopg.OperationalError(result.get_error_message())
    raise psycopg.errors.error_from_result(result)


def _django() -> BaseDatabaseWrapper:
    django = connections[DEFAULT_DB_ALIAS]
    if not django.in_atomic_block:
        raise RuntimeError("this needs a transaction: call it inside `db.write`, `db.read` or `db.sweep`")
    return django


def _kept_by(django: BaseDatabaseWrapper) -> _Kept:
    raw: Any = django.connection
    if raw is None:
        raise psycopg.InterfaceError("the connection was closed during its transaction")
    kept = _kept.get(django)
    if kept is None or kept.connection is not raw:
        kept = _kept[django] = _Kept(raw)
    return kept
