"""Attempts by when they began: what the rates of a policy count."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0006_runs")]
    operations = [
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(fields=["tenant", "started_at"], name="attempt_begun"),
        ),
    ]
