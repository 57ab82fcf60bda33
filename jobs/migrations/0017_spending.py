"""What a turn has still to tell the spend journal of its requests (RULES S10)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0016_continuing")]
    operations = [
        migrations.AddField(
            "turn",
            "to_confirm",
            models.JSONField(default=list, help_text="what the spend journal is still to be told of its requests"),
        ),
        migrations.AddIndex(
            "turn", models.Index(fields=["ended_at"], condition=~models.Q(to_confirm=[]), name="turn_to_confirm")
        ),
    ]
