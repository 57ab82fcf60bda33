"""Row-level security of the catalog, references that carry the tenant, and the gate's triggers."""

from django.db import migrations

from base.tenancy import protect, referable, refer

WATCHED = ("catalog_killswitch", "catalog_policyversion", "catalog_entryapproval")


def _watch(table: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"CREATE TRIGGER bump_gate AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION oz0_bump_gate()",
        f"DROP TRIGGER bump_gate ON {table}",
    )


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial"), ("tenants", "0002_ground")]
    operations = [
        referable(
            "catalog_plugin", "catalog_pluginversion", "catalog_tool", "catalog_listing", "catalog_function", "catalog_agent"
        ),
        refer("catalog_pluginversion", {"plugin_id": "catalog_plugin"}),
        refer("catalog_tool", {"plugin_version_id": "catalog_pluginversion"}),
        refer("catalog_listing", {"tool_id": "catalog_tool"}),
        refer("catalog_function", {"listing_id": "catalog_listing", "tool_id": "catalog_tool"}),
        refer("catalog_agent", {"plugin_version_id": "catalog_pluginversion"}),
        refer("catalog_skill", {"plugin_version_id": "catalog_pluginversion"}),
        protect("catalog_plugin"),
        protect("catalog_pluginversion"),
        protect("catalog_tool", swept=True),
        protect("catalog_listing"),
        protect("catalog_function", swept=True),
        protect("catalog_entryapproval"),
        protect("catalog_agent"),
        protect("catalog_skill"),
        protect("catalog_policyversion"),
        protect("catalog_killswitch", swept=True),
        *[_watch(table) for table in WATCHED],
    ]
