"""What a kill switch ended is found without reading every call."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0009_switch_modes'),
        ('jobs', '0004_start_key'),
        ('tenants', '0002_ground'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='call',
            index=models.Index(condition=models.Q(('reason', 'kill_switch')), fields=['tenant', '-ended_at'], name='call_ended_by_switch'),
        ),
    ]
