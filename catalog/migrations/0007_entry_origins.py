"""Which server an approval of an entry was given for. One from before names none, so it counts no more: ask again."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0006_switch_targets'),
    ]

    operations = [
        migrations.AddField(
            model_name='entryapproval',
            name='address',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='entryapproval',
            name='connection',
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name='entryapproval',
            name='plugin',
            field=models.CharField(blank=True, max_length=64),
        ),
    ]
