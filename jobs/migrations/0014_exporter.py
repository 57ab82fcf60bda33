"""Where the traces of a tenant's jobs go, and jobs found by their end."""

import base.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from base.tenancy import protect


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0014_linted'),
        ('jobs', '0013_node_consumed'),
        ('tenants', '0006_token_pace'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Exporter',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('url', models.TextField()),
                ('allowed', models.JSONField(default=list, help_text='host:port entries that may be reached besides public ones')),
                ('header', models.CharField(blank=True, help_text="the name of the header that the vault's value is of", max_length=100)),
                ('on', models.BooleanField(default=True)),
                ('since', models.DateTimeField()),
                ('last', models.UUIDField(null=True)),
                ('due_at', models.DateTimeField(help_text='when it is looked for something to send; after a claim, for who claims anew')),
                ('tries', models.PositiveIntegerField(default=0, help_text='how often the same was sent in vain')),
                ('trouble', models.TextField(blank=True)),
                ('sent', models.PositiveBigIntegerField(default=0, help_text='jobs')),
                ('sent_at', models.DateTimeField(null=True)),
                ('made_at', models.DateTimeField()),
            ],
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['tenant', 'ended_at', 'id'], name='job_ended'),
        ),
        migrations.AddField(
            model_name='exporter',
            name='tenant',
            field=models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant'),
        ),
        migrations.AddIndex(
            model_name='exporter',
            index=models.Index(condition=models.Q(('on', True)), fields=['due_at'], name='exporter_due'),
        ),
        migrations.AddConstraint(
            model_name='exporter',
            constraint=models.UniqueConstraint(fields=('tenant',), name='exporter_one'),
        ),
        protect("jobs_exporter", swept=True),
        # what a sweep looks for, and not where the traces go
        migrations.RunSQL(
            'REVOKE SELECT ON jobs_exporter FROM oz0_sweep; GRANT SELECT (id, tenant_id, "on", due_at) ON jobs_exporter TO oz0_sweep',
            migrations.RunSQL.noop,
        ),
    ]
