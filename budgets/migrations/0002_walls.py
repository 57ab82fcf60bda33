"""Row-level security of the journal, references that carry the tenant, and what holds between an operation's rows."""

from django.db import migrations

from base.tenancy import BEARER, TENANT, protect, referable, refer

# Items are completed ones, then at most one that failed or is unknown, then those never attempted (RULES S3). Looked at
# when a transaction commits, whatever it changed.
IN_ORDER = """
CREATE FUNCTION oz0_items_in_order() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose uuid; op budgets_operation; pattern text; first int; last int;
BEGIN
    IF TG_TABLE_NAME = 'budgets_operation' THEN whose := NEW.id; ELSE whose := coalesce(NEW.operation_id, OLD.operation_id); END IF;
    SELECT * INTO op FROM budgets_operation WHERE id = whose;
    IF NOT FOUND THEN RETURN NULL; END IF;
    SELECT string_agg(CASE standing WHEN 'completed' THEN 'c' WHEN 'unattempted' THEN 'u' ELSE 'x' END, '' ORDER BY index),
        min(index), max(index) INTO pattern, first, last FROM budgets_item WHERE operation_id = whose;
    IF pattern IS NULL OR length(pattern) <> op.size OR first <> 0 OR last <> op.size - 1 THEN
        RAISE EXCEPTION 'operation % has not the items 0 to %', whose, op.size - 1
            USING ERRCODE = 'check_violation', CONSTRAINT = 'operation_has_its_items';
    ELSIF pattern !~ '^c*x?u*$' OR (pattern ~ 'x' AND op.standing <> 'interrupted') THEN
        RAISE EXCEPTION 'items of operation % stand in no order: %', whose, pattern
            USING ERRCODE = 'check_violation', CONSTRAINT = 'operation_items_in_order';
    ELSIF op.standing = 'finished' AND pattern !~ '^c+$' THEN
        RAISE EXCEPTION 'operation % is not finished: %', whose, pattern
            USING ERRCODE = 'check_violation', CONSTRAINT = 'operation_finished_when_completed';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER items_in_order AFTER INSERT OR UPDATE ON budgets_operation
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION oz0_items_in_order();
CREATE CONSTRAINT TRIGGER items_in_order AFTER INSERT OR UPDATE OR DELETE ON budgets_item
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION oz0_items_in_order();
"""
NOT_IN_ORDER = """
DROP TRIGGER items_in_order ON budgets_item; DROP TRIGGER items_in_order ON budgets_operation;
DROP FUNCTION oz0_items_in_order();
"""
# What was told of an item once is told of it for ever, and an operation that has ended goes on no more.
KEPT = """
CREATE FUNCTION oz0_history_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% % is history', TG_TABLE_NAME, OLD.id
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
END $$;
CREATE TRIGGER item_is_history BEFORE UPDATE ON budgets_item
    FOR EACH ROW WHEN (OLD.standing <> 'unattempted') EXECUTE FUNCTION oz0_history_is_kept();
CREATE TRIGGER operation_is_history BEFORE UPDATE ON budgets_operation
    FOR EACH ROW WHEN (OLD.standing <> 'running' OR OLD.digest <> NEW.digest OR OLD.size <> NEW.size)
    EXECUTE FUNCTION oz0_history_is_kept();
"""
NOT_KEPT = """
DROP TRIGGER item_is_history ON budgets_item; DROP TRIGGER operation_is_history ON budgets_operation;
DROP FUNCTION oz0_history_is_kept();
"""
# Whoever shows a secret of a key sees that key, before its tenant is known.
SHOWN = f"tenant_id = {TENANT} OR token_hash = {BEARER} OR refresh_hash = {BEARER} OR old_refresh_hash = {BEARER}"
SEE_KEY = f"ALTER POLICY tenant ON budgets_key USING ({SHOWN}) WITH CHECK (tenant_id = {TENANT})"


class Migration(migrations.Migration):
    dependencies = [("budgets", "0001_journal")]
    operations = [
        referable("budgets_project", "budgets_key", "budgets_operation", "budgets_reservation", "budgets_run"),
        refer("budgets_limit", {"project_id": "budgets_project"}),
        refer("budgets_tally", {"project_id": "budgets_project"}),
        refer("budgets_key", {"project_id": "budgets_project"}),
        refer("budgets_operation", {"project_id": "budgets_project", "key_id": "budgets_key"}),
        refer("budgets_reservation", {"project_id": "budgets_project", "operation_id": "budgets_operation"}),
        refer("budgets_item", {"operation_id": "budgets_operation", "reservation_id": "budgets_reservation"}),
        refer("budgets_receipt", {"project_id": "budgets_project", "reservation_id": "budgets_reservation"}),
        refer("budgets_run", {"project_id": "budgets_project"}),
        refer("budgets_spendevent", {"project_id": "budgets_project", "run_id": "budgets_run"}),
        refer("budgets_tagvalue", {"project_id": "budgets_project"}),
        protect("budgets_project"),
        protect("budgets_limit"),
        protect("budgets_tally"),
        protect("budgets_key"),
        migrations.RunSQL(SEE_KEY, migrations.RunSQL.noop),
        protect("budgets_operation", swept=True),
        protect("budgets_reservation", swept=True),
        protect("budgets_item"),
        protect("budgets_receipt", append_only=True),
        protect("budgets_run"),
        protect("budgets_spendevent", append_only=True),
        protect("budgets_tagvalue"),
        migrations.RunSQL(IN_ORDER, NOT_IN_ORDER),
        migrations.RunSQL(KEPT, NOT_KEPT),
    ]
