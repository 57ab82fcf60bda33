"""Find the calls with the same arguments as one that waits, however long ago they were made."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0017_spending")]
    operations = [
        migrations.AddIndex(
            "call",
            models.Index(fields=["args_digest", "-id"], condition=models.Q(read_only=False), name="call_same_arguments"),
        )
    ]
