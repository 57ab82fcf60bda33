"""How each version of a plugin came, and plugins that were removed."""

import base.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from base.tenancy import protect, refer


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0012_lint'),
        ('tenants', '0002_ground'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Arrival',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('came', models.CharField(max_length=32)),
                ('file_name', models.CharField(blank=True, max_length=200)),
                ('files', models.JSONField()),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='pluginversion',
            name='plugin_version_stage',
        ),
        migrations.AddField(
            model_name='plugin',
            name='removed_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='plugin',
            name='removed_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='pluginversion',
            constraint=models.CheckConstraint(condition=models.Q(('stage__in', ['current', 'canary', 'old', 'removed'])), name='plugin_version_stage'),
        ),
        migrations.AddField(
            model_name='arrival',
            name='brought_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='arrival',
            name='tenant',
            field=models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant'),
        ),
        migrations.AddField(
            model_name='arrival',
            name='version',
            field=models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='arrival', to='catalog.pluginversion'),
        ),
        migrations.AddConstraint(
            model_name='arrival',
            constraint=models.CheckConstraint(condition=models.Q(('came__in', ['folder', 'pack', 'upload', 'import'])), name='arrival_came'),
        ),
        refer("catalog_arrival", {"version_id": "catalog_pluginversion"}),
        protect("catalog_arrival", append_only=True),
    ]
