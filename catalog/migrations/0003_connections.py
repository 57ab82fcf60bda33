"""Connections to remote servers."""


import base.ids
import catalog.models
import django.db.models.deletion
from django.db import migrations, models

from base.tenancy import protect


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0002_walls'),
        ('tenants', '0002_ground'),
    ]

    operations = [
        migrations.AddField(
            model_name='tool',
            name='connection',
            field=models.CharField(blank=True, help_text='the name of the connection of a remote server', max_length=64),
        ),
        migrations.CreateModel(
            name='Connection',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=64)),
                ('url', models.TextField()),
                ('allowed', models.JSONField(default=list)),
                ('protocol', models.CharField(blank=True, max_length=32)),
                ('credential', models.CharField(default=catalog.models.Credential['NONE'], max_length=32)),
                ('header', models.CharField(blank=True, max_length=100)),
                ('credential_version', models.PositiveIntegerField(default=1)),
                ('changed_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='connection_once'), models.CheckConstraint(condition=models.Q(('credential__in', ['none', 'bearer', 'header', 'oauth'])), name='connection_credential'), models.CheckConstraint(condition=models.Q(models.Q(('credential', 'header'), models.Q(('header', ''), _negated=True)), models.Q(models.Q(('credential', 'header'), _negated=True), ('header', '')), _connector='OR'), name='connection_names_its_header')],
            },
        ),
        protect("catalog_connection"),
    ]
