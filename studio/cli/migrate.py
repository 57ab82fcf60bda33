"""`oz0 migrate`: bring the database to this version's shape, as the owner of its schema."""

import itertools
import json
import os
from typing import Final

import click

from studio.cli import _told

LOCK: Final = 0x6F7A30  # "oz0"
PATIENCE: Final = "60s"


@click.command(
    cls=_told.Told,
    short_help="Bring the database to this version.",
    exits={_told.Exit.DONE: "the database has this version's shape", _told.Exit.FAILED: "it could not be migrated"},
    examples=["DATABASE_OWNER_URL=postgres://oz0_owner:…@db/oz0 oz0 migrate"],
)
@_told.json_option
def migrate(as_json: bool) -> None:
    """Apply the migrations that the database lacks; two at once wait for each other."""
    os.environ["OZ0_AS_OWNER"] = "1"
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.db import OperationalError

    try:
        django.setup()
        applied = apply()
        if as_json:
            click.echo(json.dumps({"applied": [f"{app}.{name}" for app, name in applied]}))
            return
        for app, names in itertools.groupby(applied, key=lambda found: found[0]):
            click.echo(f"applied {app} {', '.join(name for _, name in names)}")
    except (ImproperlyConfigured, OperationalError) as error:
        raise click.ClickException(str(error).strip()) from error


def apply() -> list[tuple[str, str]]:
    """Apply what is missing, holding a lock in the database; the app and name of each migration that was applied.

    Django must be set up.
    """
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [PATIENCE])
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        cursor.execute("RESET lock_timeout")
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if plan:
            call_command("migrate", interactive=False, verbosity=0)
        return [(migration.app_label, migration.name) for migration, _ in plan]
    finally:
        connection.close()  # which also frees the lock
