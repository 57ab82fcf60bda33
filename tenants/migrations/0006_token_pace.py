"""How often a token asks is counted in the database, so that the limit holds over every web process."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0005_patience")]
    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="paced_until",
            field=models.DateTimeField(help_text="how far its questions reach (tenants.rules.pace)", null=True),
        ),
    ]
