"""Edited arguments, calls asked for again, jobs of one call, and late notes (RULES A8, A9)."""

import django.db.models.deletion
from django.db import migrations, models

from base.tenancy import refer

BODY = {"null": True, "on_delete": django.db.models.deletion.PROTECT, "related_name": "+", "db_constraint": False}


class Migration(migrations.Migration):
    dependencies = [("jobs", "0008_read_manuals")]
    operations = [
        migrations.AddField("call", "edited_from", models.ForeignKey(to="jobs.body", **BODY)),
        migrations.AddField("call", "again_of", models.ForeignKey(to="jobs.call", **BODY)),
        migrations.AddConstraint(
            "call", models.UniqueConstraint(fields=["again_of"], name="call_asked_again_once")
        ),
        migrations.AddField(
            "hold",
            "edit",
            models.ForeignKey(
                to="jobs.body",
                help_text="the arguments before and after, when the answer was to edit them (RULES A9)",
                **BODY,
            ),
        ),
        migrations.AddIndex(
            "hold",
            models.Index(
                fields=["tenant", "closed_at"],
                condition=models.Q(("closed_at__isnull", False)),
                name="hold_closed",
            ),
        ),
        migrations.AddField(
            "job",
            "one_call",
            models.BooleanField(default=False, help_text="it makes one call, which a person asked for, and no turn"),
        ),
        migrations.AddField(
            "turn",
            "notes",
            models.JSONField(default=list, help_text="the late calls that its model was told of, by their ids"),
        ),
        refer("jobs_call", {"edited_from_id": "jobs_body", "again_of_id": "jobs_call"}),
        refer("jobs_hold", {"edit_id": "jobs_body"}),
    ]
