"""Channels, the notices sent to them, and their walls."""

import approvals.models
import base.ids
import django.db.models.deletion
from django.db import migrations, models

from base.tenancy import protect, referable, refer


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0004_bindings'),
        ('jobs', '0007_attempts_begun'),
        ('tenants', '0004_audit_kept'),
    ]

    operations = [
        migrations.CreateModel(
            name='Channel',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=64)),
                ('way', models.CharField(max_length=32)),
                ('url', models.TextField(blank=True, help_text='of a webhook')),
                ('allowed', models.JSONField(default=list, help_text='host:port entries that a webhook may reach besides public ones')),
                ('slack', models.BooleanField(default=False, help_text='a webhook that takes a text, as chat services do')),
                ('to', models.JSONField(default=list, help_text='the addresses of an email')),
                ('agent', models.CharField(blank=True, help_text='only questions of this agent', max_length=64)),
                ('tool', models.CharField(blank=True, help_text='only questions about this tool', max_length=48)),
                ('after', models.PositiveIntegerField(default=0, help_text='seconds a question has waited before it is told here')),
                ('remind', models.PositiveIntegerField(default=0, help_text='seconds before it expires to tell again; 0: never')),
                ('tells_end', models.BooleanField(default=False, help_text='also tell how it was closed')),
                ('with_arguments', models.BooleanField(default=False)),
                ('since', models.DateTimeField()),
                ('on', models.BooleanField(default=True)),
                ('off_because', models.TextField(blank=True, help_text='why it was turned off, when the studio did')),
                ('failing_since', models.DateTimeField(null=True)),
                ('failures', models.PositiveIntegerField(default=0, help_text='tries that failed in a row')),
                ('changed_at', models.DateTimeField()),
                ('removed_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('about', models.CharField(help_text='asked, expiring, day 2, closed, or test', max_length=32)),
                ('standing', models.CharField(default=approvals.models.Sending['DUE'], max_length=32)),
                ('made_at', models.DateTimeField()),
                ('due_at', models.DateTimeField(null=True)),
                ('taken_until', models.DateTimeField(help_text='while one process tries it, no other does', null=True)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('ended_at', models.DateTimeField(null=True)),
                ('status', models.PositiveIntegerField(help_text='what the last try was answered with', null=True)),
                ('took', models.FloatField(help_text='seconds of the last try', null=True)),
                ('trouble', models.TextField(blank=True)),
                ('carried_by', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='carried', to='approvals.delivery')),
                ('channel', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='approvals.channel')),
                ('hold', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='jobs.hold')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.AddConstraint(
            model_name='channel',
            constraint=models.UniqueConstraint(condition=models.Q(('removed_at__isnull', True)), fields=('tenant', 'name'), name='channel_name_once'),
        ),
        migrations.AddConstraint(
            model_name='channel',
            constraint=models.CheckConstraint(condition=models.Q(('way__in', ['email', 'webhook'])), name='channel_way'),
        ),
        migrations.AddConstraint(
            model_name='channel',
            constraint=models.CheckConstraint(condition=models.Q(('removed_at__isnull', True), ('on', False), _connector='OR'), name='channel_removed_is_off'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='delivery_due'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['tenant', '-id'], name='delivery_newest'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['channel', '-id'], name='delivery_of_channel'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(('standing__in', ['due', 'sent', 'carried', 'failed', 'dropped'])), name='delivery_state'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(condition=models.Q(('hold__isnull', False)), fields=('channel', 'hold', 'about'), name='delivery_once'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('due_at__isnull', False), ('ended_at__isnull', True), ('standing', approvals.models.Sending['DUE'])), models.Q(models.Q(('standing', approvals.models.Sending['DUE']), _negated=True), ('due_at__isnull', True), ('ended_at__isnull', False)), _connector='OR'), name='delivery_due_until_ended'),
        ),
        referable("approvals_channel", "approvals_delivery"),
        refer(
            "approvals_delivery",
            {"channel_id": "approvals_channel", "hold_id": "jobs_hold", "carried_by_id": "approvals_delivery"},
        ),
        protect("approvals_channel", swept=True),
        # what a sweep looks for, and not where the notices go
        migrations.RunSQL(
            "REVOKE SELECT ON approvals_channel FROM oz0_sweep;"
            "GRANT SELECT (id, tenant_id, way, agent, tool, after, remind, tells_end, since, \"on\")"
            " ON approvals_channel TO oz0_sweep",
            migrations.RunSQL.noop,
        ),
        protect("approvals_delivery", swept=True),
    ]
