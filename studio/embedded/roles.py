"""The database's roles (MACHINES 7): who owns the schema, who works in it, who sweeps it."""

from typing import Any, Final

from psycopg import Connection, sql

OWNER: Final = "oz0_owner"
APP: Final = "oz0_app"
SWEEP: Final = "oz0_sweep"

ATTRIBUTES: Final = {
    OWNER: "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION",
    APP: "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION",
    SWEEP: "NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION",
}

# The app writes rows and reads sequences; migrations take away what it must not have and let sweeps see some.
SCHEMA: Final = f"""
ALTER SCHEMA public OWNER TO {OWNER};
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {APP}, {SWEEP};
ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {APP};
ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA public
    GRANT USAGE ON SEQUENCES TO {APP};
"""


def create_roles(admin: Connection[Any], passwords: dict[str, str]) -> None:
    """Bring the three roles to exactly these attributes and passwords; doing it again changes nothing."""
    there = {row[0] for row in admin.execute("SELECT rolname FROM pg_roles")}
    for role, attributes in ATTRIBUTES.items():
        verb = "ALTER" if role in there else "CREATE"
        password = sql.Literal(passwords[role]) if role in passwords else sql.SQL("NULL")
        statement = f"{verb} ROLE {role} {attributes} PASSWORD "
        admin.execute(sql.SQL(statement) + password)
    admin.execute(f"GRANT {SWEEP} TO {APP} WITH INHERIT FALSE, SET TRUE")


def create_database(admin: Connection[Any], name: str) -> None:
    """Make a database of the owner's where nobody else connects but the app, unless it is there."""
    if admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER)))
    admin.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))
    admin.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(name), sql.Identifier(APP)))


def prepare_schema(admin: Connection[Any]) -> None:
    """Give the connected database's schema to the owner; let the app work in what the owner creates."""
    admin.execute(SCHEMA)
