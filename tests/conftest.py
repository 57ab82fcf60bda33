"""What every test may ask for: a real PostgreSQL of its own, migrated, seen as the application's role."""

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

os.environ.setdefault("OZ0_SECRET_KEY", "for tests only")
os.environ["DATABASE_URL"] = "postgres://nobody@/nowhere?host=/nonexistent"  # until a test asks for `database`
os.environ["REDIS_URL"] = "redis://127.0.0.1:1/0"  # nobody listens: a test that needs a broker starts one
os.environ["BROKER_URL"] = os.environ["REDIS_URL"]
os.environ["DJANGO_SETTINGS_MODULE"] = "studio.settings"

import django
import hypothesis
import psycopg
import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from studio import embedded
from tests import clusters

# The same examples in every run, however slow the machine; `pytest --hypothesis-profile=default` draws new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")

django.setup()
import studio.celery  # noqa: E402, F401 - its settings make a dead broker cost next to nothing


def pytest_configure(config: pytest.Config) -> None:
    """Once for all workers."""
    if not hasattr(config, "workerinput"):
        clusters.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Once for all workers."""
    if not hasattr(config, "workerinput"):
        clusters.forget()


@pytest.fixture(scope="session")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[embedded.Postgres]:
    """A PostgreSQL for this run, migrated as its owner; Django connects to it as the application's role."""
    with django_db_blocker.unblock():
        folder = clusters.seed(tmp_path_factory.mktemp("postgres"))
        with embedded.postgres(folder, fsync=False, keep=False) as server, clusters.connected(server.url_app):
            yield server


def _delete_all(admin: psycopg.Connection[Any], tables: list[str]) -> None:
    """Empty the tables; a server that still answers its last request may be in the way for a moment.

    Far quicker for few rows than TRUNCATE. As a replica no trigger runs and no reference is looked at.
    """
    lock = f"LOCK TABLE {', '.join(tables)} IN EXCLUSIVE MODE"
    steps = [lock, "SET LOCAL session_replication_role = replica", *(f"DELETE FROM {table}" for table in tables)]
    for left in reversed(range(10)):
        try:
            with admin.transaction():
                admin.execute("; ".join(steps))
            return
        except psycopg.errors.DeadlockDetected:
            if not left:
                raise


@pytest.fixture(scope="session")
def _empty(cluster: embedded.Postgres) -> Iterator[Callable[[], None]]:
    """Empty every table but those the migrations filled."""
    # One connection for the whole run: a new one would have to learn of every table anew.
    admin = psycopg.connect(cluster.url_admin, autocommit=True)
    keep = "('django_migrations', 'django_content_type', 'auth_permission', 'oz0_clock')"
    names = admin.execute(f"SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN {keep}")
    tables = [name for (name,) in names]

    def empty() -> None:
        nonlocal admin
        try:
            admin.execute("SELECT 1")
        except psycopg.OperationalError:  # the test restarted the server
            admin = psycopg.connect(cluster.url_admin, autocommit=True)
        _delete_all(admin, tables)
        admin.execute("UPDATE oz0_clock SET ahead = '0' WHERE ahead <> '0'")

    yield empty
    admin.close()


@pytest.fixture
def database(
    cluster: embedded.Postgres, _empty: Callable[[], None], django_db_blocker: DjangoDbBlocker
) -> Iterator[embedded.Postgres]:
    """An empty, migrated database, with transactions as they really are: nothing is rolled back behind a test."""
    with django_db_blocker.unblock():
        yield cluster
        connections["default"].close()
        _empty()


@pytest.fixture
def move_clock(database: embedded.Postgres) -> Callable[[timedelta], None]:
    """Move the database's clock ahead, for everyone who asks it (MACHINES 3)."""

    def move(ahead: timedelta) -> None:
        with psycopg.connect(database.url_admin, autocommit=True) as admin:
            admin.execute("UPDATE oz0_clock SET ahead = ahead + %s", [ahead])

    return move
