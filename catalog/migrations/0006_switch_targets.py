"""A switch over a tenant has no target; every other has one."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0005_sandboxes'),
        ('tenants', '0002_ground'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddConstraint(
            model_name='killswitch',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('scope', "tenant"), ('target', '')), models.Q(models.Q(('scope', "tenant"), _negated=True), models.Q(('target', ''), _negated=True)), _connector='OR'), name='switch_target_of_scope'),
        ),
    ]
