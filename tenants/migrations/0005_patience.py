"""For how long the client of a token waits for a call, and jobs that name the token they came by (RULES G5, G7)."""

from django.db import migrations, models

from base.tenancy import referable

WAITS = "seconds for which its client waits for a call to end (RULES G5)"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_audit_kept")]
    operations = [
        migrations.AddField(
            "apitoken", "patience", models.PositiveSmallIntegerField(default=45, help_text=WAITS)
        ),
        referable("tenants_apitoken"),
    ]
