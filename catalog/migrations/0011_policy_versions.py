"""A version of a policy says what it restores, and takes no change whatever the application's code says."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalog", "0010_server_generation")]
    operations = [
        migrations.AddField(
            model_name="policyversion",
            name="restores",
            field=models.PositiveIntegerField(help_text="the older version whose rules these are", null=True),
        ),
        migrations.RunSQL(
            "REVOKE UPDATE, DELETE, TRUNCATE ON catalog_policyversion FROM oz0_app", migrations.RunSQL.noop
        ),
    ]
