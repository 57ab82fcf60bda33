"""The ground everything stands on: the database's movable clock, and the walls between tenants."""

from django.db import migrations

from base.tenancy import PERSON, TENANT, protect

CLOCK = """
CREATE TABLE oz0_clock (one boolean PRIMARY KEY DEFAULT true CHECK (one), ahead interval NOT NULL);
INSERT INTO oz0_clock (ahead) VALUES ('0');
REVOKE ALL ON oz0_clock FROM oz0_app;
GRANT SELECT ON oz0_clock TO oz0_app, oz0_sweep;
CREATE FUNCTION oz0_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    $$ SELECT clock_timestamp() + (SELECT ahead FROM oz0_clock) $$;
"""
NO_CLOCK = "DROP FUNCTION oz0_now(); DROP TABLE oz0_clock"

# A person sees their own memberships, and through them the names of their tenants, before any tenant is chosen.
MINE = f"tenant_id = {TENANT} OR user_id = {PERSON}"
MY_TENANTS = (
    f"id = {TENANT} OR EXISTS (SELECT 1 FROM tenants_membership m WHERE m.tenant_id = tenants_tenant.id AND m.user_id = {PERSON})"
)

# Any change of what may run bumps the gate, so that it waits for claims under way and they for it (MACHINES 2);
# as a trigger it also holds for a change made by plain SQL.
BUMP = """
CREATE FUNCTION oz0_bump_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tenants_gate SET version = version + 1 WHERE tenant_id = coalesce(NEW.tenant_id, OLD.tenant_id);
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]
    operations = [
        migrations.RunSQL(CLOCK, NO_CLOCK),
        migrations.RunSQL(BUMP, "DROP FUNCTION oz0_bump_gate()"),
        protect("tenants_membership", visible=MINE),
        protect("tenants_tenant", visible=MY_TENANTS, swept=True),
        protect("tenants_gate"),
        protect("tenants_apitoken"),
        protect("tenants_secret"),
        protect("tenants_audithead"),
        protect("tenants_auditentry", append_only=True),
    ]
