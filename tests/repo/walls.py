"""Whether PostgreSQL itself keeps tenants apart (MACHINES 7): read from its own catalog."""

from collections.abc import Callable
from typing import Any, Final

from django.apps import apps
from django.db.models import ForeignKey

type Ask = Callable[[str], list[tuple[Any, ...]]]

# Tables with rows of a tenant: those that name one, and the tenants themselves.
TENANTED: Final = """
SELECT c.oid, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND (c.relname = 'tenants_tenant' OR EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped))
"""
WITHOUT_ROW_SECURITY: Final = f"""
SELECT t.relname FROM ({TENANTED}) t JOIN pg_class c ON c.oid = t.oid
WHERE NOT (c.relrowsecurity AND c.relforcerowsecurity)
"""
# A policy walls a table off when it binds the application and asks for the tenant.
WITHOUT_POLICY: Final = f"""
SELECT t.relname FROM ({TENANTED}) t WHERE NOT EXISTS (
    SELECT FROM pg_policy p WHERE p.polrelid = t.oid AND 'oz0_app'::regrole = ANY (p.polroles)
    AND p.polcmd = '*' AND pg_get_expr(p.polqual, p.polrelid) LIKE '%oz0.tenant%')
"""
# A policy for the application that asks for nothing opens what the others close.
WITH_OPEN_POLICY: Final = f"""
SELECT t.relname || ' (' || p.polname || ')' FROM ({TENANTED}) t JOIN pg_policy p ON p.polrelid = t.oid
WHERE (p.polroles = '{{0}}' OR 'oz0_app'::regrole = ANY (p.polroles))
AND (pg_get_expr(p.polqual, p.polrelid) = 'true' OR pg_get_expr(p.polwithcheck, p.polrelid) = 'true')
"""
# Columns in a foreign key that carries the tenant with it, so that the row referred to is of the same tenant.
TIED: Final = """
SELECT c.relname, a.attname FROM pg_constraint f
JOIN pg_class c ON c.oid = f.conrelid
JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey) AND a.attname <> 'tenant_id'
JOIN pg_attribute mine ON mine.attrelid = f.conrelid AND mine.attnum = ANY (f.conkey) AND mine.attname = 'tenant_id'
WHERE f.contype = 'f'
"""
POWERS: Final = """
SELECT rolname FROM pg_roles WHERE rolname IN ('oz0_app', 'oz0_owner', 'oz0_sweep')
AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb)
UNION ALL SELECT c.relname || ' belongs to the application' FROM pg_class c WHERE c.relowner = 'oz0_app'::regrole
"""


def gaps(ask: Ask) -> list[str]:
    """Each gap in the walls between tenants, as a sentence. `ask` runs a query and returns its rows."""
    said = {
        WITHOUT_ROW_SECURITY: "{} has no enabled and forced row-level security: call protect() in its migration",
        WITHOUT_POLICY: "{} has no policy that shows oz0_app only its tenant: call protect() in its migration",
        WITH_OPEN_POLICY: "{} is a policy that shows oz0_app every tenant",
        POWERS: "{}: the application's roles must bypass and own nothing",
    }
    found = [sentence.format(row[-1]) for query, sentence in said.items() for row in ask(query)]
    loose = _references() - {(table, column) for table, column in ask(TIED)}
    return found + [
        f"{table}.{column} can refer to another tenant's row: call refer() in its migration"
        for table, column in sorted(loose)
    ]


def _references() -> set[tuple[str, str]]:
    """Columns by which a tenant's row refers to another row of a tenant, as the models have them."""
    return {
        (model._meta.db_table, field.column)
        for model in apps.get_models()
        if _has_tenant(model)
        for field in model._meta.concrete_fields
        if isinstance(field, ForeignKey) and field.column != "tenant_id" and _has_tenant(field.related_model)
    }


def _has_tenant(model: Any) -> bool:
    return any(field.attname == "tenant_id" for field in model._meta.concrete_fields)


def tenanted(ask: Ask) -> set[str]:
    """The names of the tables that hold rows of a tenant."""
    return {row[1] for row in ask(TENANTED)}
