"""Transactions you can see: who may write, for which tenant, at what time of the database.

Every access to a tenant's rows happens inside `write`, `read` or `sweep`. Row-level security shows `oz0_app`
a tenant only while `oz0.tenant` is set, and each of these sets it for one transaction (MACHINES 7).
Time is the database's `oz0_now()`, so a test can move it and no process clock decides anything between processes.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    InternalError,
    OperationalError,
    close_old_connections,
    connections,
    transaction,
)
from psycopg.errors import IdleInTransactionSessionTimeout

from base import crash_points, prepared
from base.clock import boot_time

GONE: Final = (OperationalError, InterfaceError)  # what is raised while the database does not answer
SWEEP_ROLE: Final = "oz0_sweep"
_READ_ONLY: Final = "set_config('transaction_read_only', 'on', true)"
_TENANT: Final = "set_config('oz0.tenant', %s, true)"
PROVEN: Final = 0.1  # seconds that a connection counts as whole; no database restarts in less
STANDSTILL: Final = 10.0  # seconds; as long as a node may be silent


_proven: Final = threading.local()


def fresh() -> None:
    """Before a piece of work on a thread that keeps its connection: have one that broke meanwhile opened anew.

    Django proves a connection by a statement of its own before its next use. One that was proven a moment ago is used
    as it is, unless something failed on it.
    """
    close_old_connections()
    mine: Any = connections[DEFAULT_DB_ALIAS]
    now = boot_time()
    if mine.connection is not None and now - getattr(_proven, "at", -PROVEN) < PROVEN:
        mine.health_check_done = True
    else:
        _proven.at = now


class NotInWrite(RuntimeError):
    """Code that changes rows ran outside `db.write()`."""


class Last(IntEnum):
    """What is done at the end of a transaction, in the order of its locks (MACHINES 2)."""

    EVENTS = 1
    AUDIT = 2


@dataclass
class _Write:
    tenant: UUID
    now: datetime
    before_commit: dict[Last, Callable[[], None]] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)


_current: ContextVar[_Write | None] = ContextVar("oz0_write", default=None)


@contextmanager
def durable(stands_under: str = "", *values: str) -> Iterator[datetime]:
    """One outermost transaction; yields the database's time at its start. Inside another one it raises `RuntimeError`.

    `stands_under` sets what else holds for it. PostgreSQL ends one whose process stands still for `STANDSTILL`, so
    that a frozen machine or a cut cable keeps no lock from the living (MACHINES 2). When that process wakes, its
    database has gone: `OperationalError`.
    """
    try:
        with transaction.atomic(durable=True):
            limit = f"set_config('idle_in_transaction_session_timeout', '{STANDSTILL:g}s', true)"
            yield _told(f"SELECT {limit}, {f'{stands_under}, ' if stands_under else ''}oz0_now()", *values)
    except InternalError as error:
        if isinstance(error.__cause__, IdleInTransactionSessionTimeout):
            raise OperationalError(str(error)) from error
        raise


@contextmanager
def write(tenant: UUID, *, named: str = "") -> Iterator[datetime]:
    """One durable transaction on `tenant`'s rows; yields the database's time at its start.

    It is always the outermost transaction: inside another one it raises `RuntimeError`. `named` is one of
    `crash_points.COMMITS`, for drills.
    """
    with durable(_TENANT, str(tenant)) as now:
        if named:  # the first to run after the commit
            transaction.on_commit(lambda: crash_points.reached(f"{named}.after_commit"))
        state = _Write(tenant, now)
        token = _current.set(state)
        try:
            yield now
            while state.before_commit:
                state.before_commit.pop(min(state.before_commit))()
            if named:
                crash_points.reached(f"{named}.before_commit")
        finally:
            _current.reset(token)


@contextmanager
def read(tenant: UUID) -> Iterator[datetime]:
    """One read-only transaction on `tenant`'s rows: PostgreSQL refuses any write in it. Yields its time."""
    with durable(f"{_READ_ONLY}, {_TENANT}", str(tenant)) as now:
        yield now


@contextmanager
def read_as_person(user_id: int) -> Iterator[datetime]:
    """One read-only transaction that sees the memberships of one person, of whatever tenant, and those tenants."""
    with durable(f"{_READ_ONLY}, set_config('oz0.person', %s, true)", str(user_id)) as now:
        yield now


@contextmanager
def read_as_bearer(shown: str) -> Iterator[datetime]:
    """One read-only transaction that sees what was shown, of whatever tenant, and its time.

    A token or invitation is shown by its hash, a hook by its id.
    """
    with durable(f"{_READ_ONLY}, set_config('oz0.bearer', %s, true)", shown) as now:
        yield now


def also_as_person(user_id: int) -> None:
    """Let the open `read_as_bearer` see one person's memberships, and those tenants, from here on."""
    _told("SELECT set_config('oz0.person', %s, true), oz0_now()", str(user_id))


@contextmanager
def sweep() -> Iterator[datetime]:
    """One read-only transaction that sees every tenant's work, for finding what is due. Yields its time.

    What it finds is then locked and changed in a `write` of the tenant it belongs to.
    """
    with durable(f"{_READ_ONLY}, set_config('role', %s, true)", SWEEP_ROLE) as now:
        yield now


def must_write() -> datetime:
    """Demand an open `write` and return its time. Raises `NotInWrite`."""
    return _writing().now


def later() -> datetime:
    """The database's time by now, where the open `write` has waited for a lock since its start."""
    must_write()
    return _told("SELECT oz0_now()")


def writing_tenant() -> UUID:
    """The tenant of the open `write`. Raises `NotInWrite`."""
    return _writing().tenant


def alone(doing: str) -> None:
    """Let no other open `write` of the tenant that says the same go on from here until this one has ended.

    For what is looked for and then added, such as a name that may be taken. Raises `NotInWrite`.
    """
    _told("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0)), oz0_now()", f"{writing_tenant()} {doing}")


def before_commit(place: Last, act: Callable[[], None]) -> None:
    """Run `act` once at the end of the open `write`, still inside its transaction, in the order of `Last`."""
    _writing().before_commit.setdefault(place, act)


def kept[Kept](name: str, make: Callable[[], Kept]) -> Kept:
    """An object that lives as long as the open `write`, made on first use: what is gathered for its end."""
    kept = _writing().kept
    if name not in kept:
        kept[name] = make()
    found: Kept = kept[name]
    return found


def after_commit(act: Callable[[], None]) -> None:
    """Run `act` once the open `write` has committed. A failure of it is logged and never undoes the commit."""
    must_write()
    transaction.on_commit(act, robust=True)


def _writing() -> _Write:
    state = _current.get()
    if state is None:
        raise NotInWrite("this changes rows: call it inside `with db.write(tenant):`")
    return state


def _told(sql: str, *values: str) -> datetime:
    """Set what the open transaction stands under; the database's time, which the statement asks for last."""
    told = prepared.fetch_one(sql, values)
    assert told is not None  # noqa: S101 - a SELECT without FROM has a row
    now: datetime = told[-1]
    return now
