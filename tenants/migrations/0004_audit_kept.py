"""The audit log takes no change and no deletion from anybody, and its end only moves forward (RULES A12)."""

from django.db import migrations, models

KEPT = """
CREATE FUNCTION oz0_audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % of % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE ON tenants_auditentry FOR EACH ROW EXECUTE FUNCTION oz0_audit_kept();
CREATE TRIGGER audit_kept_whole BEFORE TRUNCATE ON tenants_auditentry FOR EACH STATEMENT EXECUTE FUNCTION oz0_audit_kept();
CREATE FUNCTION oz0_audit_head_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.tenant_id <> OLD.tenant_id OR NEW.seq < OLD.seq OR (NEW.seq = OLD.seq AND NEW.hash <> OLD.hash) THEN
        RAISE EXCEPTION 'the end of the audit log only moves forward' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_head_forward BEFORE UPDATE OR DELETE ON tenants_audithead FOR EACH ROW EXECUTE FUNCTION oz0_audit_head_forward();
REVOKE DELETE, TRUNCATE ON tenants_audithead FROM oz0_app;
"""
NOT_KEPT = """
DROP TRIGGER audit_kept ON tenants_auditentry;
DROP TRIGGER audit_kept_whole ON tenants_auditentry;
DROP TRIGGER audit_head_forward ON tenants_audithead;
DROP FUNCTION oz0_audit_kept();
DROP FUNCTION oz0_audit_head_forward();
GRANT DELETE, TRUNCATE ON tenants_audithead TO oz0_app;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_people")]
    operations = [
        migrations.AddIndex(
            model_name="auditentry", index=models.Index(fields=["tenant", "verb", "-seq"], name="audit_by_verb")
        ),
        migrations.AddIndex(
            model_name="auditentry", index=models.Index(fields=["tenant", "actor", "-seq"], name="audit_by_actor")
        ),
        migrations.AddIndex(
            model_name="auditentry", index=models.Index(fields=["tenant", "object", "-seq"], name="audit_by_object")
        ),
        migrations.RunSQL(KEPT, NOT_KEPT),
    ]
