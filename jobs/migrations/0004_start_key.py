"""A start is named by its starter, so that a repeated one starts nothing twice."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0006_switch_targets'),
        ('jobs', '0003_resume'),
        ('tenants', '0002_ground'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='start_key',
            field=models.CharField(blank=True, help_text='what makes a repeated start this one', max_length=64),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.UniqueConstraint(condition=models.Q(('start_key', ''), _negated=True), fields=('tenant', 'starter', 'started_by', 'start_key'), name='job_started_once', nulls_distinct=False),
        ),
    ]
