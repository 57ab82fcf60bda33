"""What the channel of a decision may say."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0002_walls'),
    ]

    operations = [
        migrations.AlterField(
            model_name='decision',
            name='channel',
            field=models.CharField(help_text='how it reached us: page, or group with others', max_length=32),
        ),
    ]
