"""When a node last took a message from the broker: what proves that messages get through."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0012_starters")]
    operations = [
        migrations.AddField(
            model_name="node",
            name="consumed_at",
            field=models.DateTimeField(help_text="when it last took a message that proves the broker's way", null=True),
        ),
    ]
