"""The last of what each tool's servers said."""

import base.ids
import django.db.models.deletion
from django.db import migrations, models

from base.tenancy import protect, refer


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0007_entry_origins'),
        ('tenants', '0002_ground'),
    ]

    operations = [
        migrations.CreateModel(
            name='ServerLog',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('node', models.UUIDField()),
                ('node_name', models.CharField(max_length=200)),
                ('lines', models.JSONField(help_text='each with its source: stderr, stdout, log or oz0')),
                ('written_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('tool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.tool')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tool', 'node'), name='server_log_once')],
            },
        ),
        refer("catalog_serverlog", {"tool_id": "catalog_tool"}),
        protect("catalog_serverlog"),
    ]
