"""`oz0 prepare-database`: the roles and the database that the studio needs on a PostgreSQL of your own."""

import json
import os
from typing import Final
from urllib.parse import unquote, urlsplit

import click

from studio.cli import _told

ADMIN, OWNER_URL, APP_URL = "OZ0_ADMIN_DATABASE_URL", "DATABASE_OWNER_URL", "DATABASE_URL"
PATIENCE: Final = 5  # seconds to connect


@click.command(
    "prepare-database",
    cls=_told.Told,
    short_help="Make roles and database on your PostgreSQL.",
    exits={_told.Exit.DONE: "roles and database are there", _told.Exit.FAILED: "they could not be made"},
    examples=["OZ0_ADMIN_DATABASE_URL=postgres://postgres:…@db/postgres oz0 prepare-database"],
)
@_told.json_option
def prepare_database(as_json: bool) -> None:
    """Make the roles oz0_owner, oz0_app and oz0_sweep and the database, with the passwords that the addresses name.

    Reads OZ0_ADMIN_DATABASE_URL (a superuser's address), DATABASE_OWNER_URL and DATABASE_URL. Doing it again brings
    roles and passwords to what these say.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from studio.embedded import roles

    database = ""
    passwords = {}
    for name, role in ((OWNER_URL, roles.OWNER), (APP_URL, roles.APP)):
        parts = urlsplit(_address(name))
        passwords[role] = unquote(parts.password or "")
        if unquote(parts.username or "") != role or not passwords[role]:
            raise click.ClickException(
                f"{name} must name the role {role} and a password: postgres://{role}:…@host/name"
            )
        here = unquote(parts.path.lstrip("/"))
        if not here or (database and here != database):
            raise click.ClickException(f"{OWNER_URL} and {APP_URL} must end in the same database: …@host/oz0")
        database = here
    admin_url = _address(ADMIN)
    try:
        conninfo_to_dict(admin_url)
        _ = urlsplit(admin_url).port
    except (psycopg.ProgrammingError, ValueError):  # their words hold a piece of the password
        said = f"{ADMIN} cannot be read: in its password, write % as %25, / as %2F, @ as %40 and : as %3A"
        raise click.ClickException(said) from None
    try:
        with psycopg.connect(admin_url, autocommit=True, connect_timeout=PATIENCE) as admin:
            roles.create_roles(admin, passwords)
            roles.create_database(admin, database)
        with psycopg.connect(admin_url, autocommit=True, connect_timeout=PATIENCE, dbname=database) as admin:
            roles.prepare_schema(admin)
    except psycopg.Error as error:
        raise click.ClickException(f"{ADMIN}: {' '.join(str(error).split())}") from error
    click.echo(json.dumps({"database": database}) if as_json else f"database {database} is ready for `oz0 migrate`")


def _address(name: str) -> str:
    found = os.environ.get(name, "")
    if not found.startswith(("postgres://", "postgresql://")):
        raise click.ClickException(f"{name} must be a postgres:// address, such as postgres://user:password@host/name")
    return found
