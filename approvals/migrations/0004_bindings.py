"""What each approval is bound to, where several people must approve."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0003_channels")]
    operations = [
        migrations.AddField(
            "decision",
            "binding",
            models.CharField(blank=True, default="", help_text="what an approval is bound to (RULES A4)", max_length=64),
            preserve_default=False,
        ),
        migrations.AlterField(
            "decision",
            "channel",
            models.CharField(help_text="how it reached us: page, group with others, or edit", max_length=32),
        ),
    ]
