"""Pairs name the login that they were traded for, and end with it. Those from before know none: they end here."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from base.tenancy import refer

END = """
UPDATE budgets_key SET revoked_at = coalesce(revoked_at, oz0_now()), refresh_hash = NULL, old_refresh_hash = NULL,
    access_until = NULL
WHERE refresh_hash IS NOT NULL
"""
KEY = Q(refresh_hash__isnull=True, old_refresh_hash__isnull=True, access_until__isnull=True, login__isnull=True)
PAIR = Q(refresh_hash__isnull=False, access_until__isnull=False, expires_at__isnull=False, login__isnull=False)


class Migration(migrations.Migration):
    dependencies = [("budgets", "0002_walls"), ("tenants", "0008_logins")]
    operations = [
        migrations.AddField(
            "key",
            "login",
            models.ForeignKey(
                "tenants.apitoken",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                db_constraint=False,
            ),
        ),
        migrations.RunSQL(END, migrations.RunSQL.noop),
        refer("budgets_key", {"login_id": "tenants_apitoken"}),
        migrations.RemoveConstraint("key", "budget_key_or_pair"),
        migrations.AddConstraint("key", models.CheckConstraint(condition=KEY | PAIR, name="budget_key_or_pair")),
    ]
