"""A model's own answers, providers that are busy, and the time that only people are waited for (RULES G2)."""

import django.db.models.deletion
from django.db import migrations, models

from base.tenancy import refer

STATES = ["asked", "answered", "failed", "lost", "busy"]
BODY = {"null": True, "on_delete": django.db.models.deletion.PROTECT, "related_name": "+", "db_constraint": False}


class Migration(migrations.Migration):
    dependencies = [("jobs", "0009_answers")]
    operations = [
        migrations.RemoveConstraint("turn", "turn_state"),
        migrations.AddConstraint(
            "turn", models.CheckConstraint(condition=models.Q(("state__in", STATES)), name="turn_state")
        ),
        migrations.AddField("turn", "response", models.ForeignKey(to="jobs.body", **BODY)),
        migrations.AddField(
            "job",
            "waiting_since",
            models.DateTimeField(help_text="since when only people are waited for", null=True),
        ),
        refer("jobs_turn", {"response_id": "jobs_body"}),
    ]
