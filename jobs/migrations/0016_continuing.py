"""Agents on real models and harness sessions continue as new (RULES G3)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0015_sessions")]
    operations = [
        migrations.AddField(
            "turn",
            "sums_up",
            models.BooleanField(default=False, help_text="it asks for a summary of its run (RULES G3)"),
        ),
        migrations.AddField(
            "session",
            "continues",
            models.JSONField(
                help_text="once it has ended well the job continues as new: what of its input changes, and a note",
                null=True,
            ),
        ),
    ]
