"""What lint finds of what the studio runs, kept for the pages. Every tool is listed once more, which lints it."""

import base.ids
import django.db.models.deletion
from django.db import migrations, models

from base.tenancy import protect, refer

LIST_AGAIN = """
UPDATE catalog_tool SET measure_due_at = oz0_now() WHERE measure_due_at IS NULL AND plugin_version_id IN
    (SELECT id FROM catalog_pluginversion WHERE stage = 'current')
"""


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0011_policy_versions'),
        ('tenants', '0002_ground'),
    ]

    operations = [
        migrations.CreateModel(
            name='LintReport',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('linted', models.CharField(help_text='the digest of its files, its listings and what lint looks for', max_length=64)),
                ('errors', models.PositiveIntegerField()),
                ('warnings', models.PositiveIntegerField()),
                ('made_at', models.DateTimeField()),
                ('plugin_version', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='lint_report', to='catalog.pluginversion')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='LintFinding',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('place', models.PositiveIntegerField(help_text='where lint told it: errors first')),
                ('severity', models.CharField(max_length=32)),
                ('code', models.CharField(max_length=64)),
                ('tool', models.CharField(blank=True, max_length=48)),
                ('function', models.CharField(blank=True, max_length=128)),
                ('file', models.TextField()),
                ('line', models.PositiveIntegerField(default=0)),
                ('key', models.TextField(blank=True)),
                ('message', models.TextField()),
                ('fix', models.TextField(blank=True)),
                ('plugin_version', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='lint_findings', to='catalog.pluginversion')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('plugin_version', 'place'), name='lint_finding_once'), models.CheckConstraint(condition=models.Q(('severity__in', ['error', 'warning'])), name='lint_finding_severity')],
            },
        ),
        refer("catalog_lintreport", {"plugin_version_id": "catalog_pluginversion"}),
        refer("catalog_lintfinding", {"plugin_version_id": "catalog_pluginversion"}),
        protect("catalog_lintreport"),
        protect("catalog_lintfinding"),
        migrations.RunSQL(LIST_AGAIN, migrations.RunSQL.noop),
    ]
