"""Tokens that nobody made: those of harness sessions, which can only call an agent's tools (RULES G4, K6)."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

ONLY_CALLS = models.Q(scopes=["call"]) & ~models.Q(agent="")


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_token_pace")]
    operations = [
        migrations.AlterField(
            "apitoken",
            "created_by",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            "apitoken",
            models.CheckConstraint(
                condition=models.Q(created_by__isnull=False) | ONLY_CALLS, name="api_token_of_nobody_only_calls"
            ),
        ),
    ]
