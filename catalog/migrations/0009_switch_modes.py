"""A switch kills or pauses, and keeps what it found when it was turned on."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0008_server_logs'),
        ('tenants', '0002_ground'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='killswitch',
            name='switch_once',
        ),
        migrations.AddField(
            model_name='killswitch',
            name='found',
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict, help_text='the work it covered at first, counted'),
        ),
        migrations.AddField(
            model_name='killswitch',
            name='mode',
            field=models.CharField(db_default='kill', default='kill', max_length=32),
        ),
        migrations.AddConstraint(
            model_name='killswitch',
            constraint=models.UniqueConstraint(condition=models.Q(('off_at__isnull', True)), fields=('tenant', 'scope', 'target', 'mode'), name='switch_once'),
        ),
        migrations.AddConstraint(
            model_name='killswitch',
            constraint=models.CheckConstraint(condition=models.Q(('mode__in', ['kill', 'pause'])), name='switch_mode'),
        ),
    ]
