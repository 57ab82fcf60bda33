"""Routines and hooks, what became of their due times and events, and what of them a job was started by."""

import base.ids
import django.db.models.deletion
import jobs.models
import jobs.rules.starters
from django.conf import settings
from django.db import migrations, models

from base.tenancy import protect, refer, referable, see_named


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0014_linted'),
        ('jobs', '0011_outside_clients'),
        ('tenants', '0004_audit_kept'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='RoutineRun',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField()),
                ('came', models.CharField(max_length=32)),
                ('skipped', models.PositiveIntegerField(default=0, help_text='due times before this one that were missed, and not run')),
                ('detail', models.TextField(blank=True)),
                ('at', models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name='job',
            name='start_token',
            field=models.ForeignKey(db_constraint=False, help_text='what a program started it with, or a person by the command of another machine', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.apitoken'),
        ),
        migrations.CreateModel(
            name='Hook',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=64)),
                ('agent_name', models.CharField(max_length=64)),
                ('signing', models.CharField(default=jobs.rules.starters.Signing['STANDARD'], max_length=32)),
                ('mapping', models.JSONField(default=dict, help_text='where each input comes from (rules.event_mapping)')),
                ('standing', models.CharField(default=jobs.rules.starters.Standing['ON'], max_length=32)),
                ('because', models.TextField(blank=True, help_text='why the studio stopped it')),
                ('old_secret_until', models.DateTimeField(help_text='how long the secret before this one still counts', null=True)),
                ('unsigned_at', models.DateTimeField(help_text='when something came last that is not signed rightly', null=True)),
                ('unsigned_why', models.CharField(blank=True, max_length=200)),
                ('changed_at', models.DateTimeField()),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.AddField(
            model_name='job',
            name='hook',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='jobs.hook'),
        ),
        migrations.CreateModel(
            name='HookDelivery',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('delivery', models.CharField(max_length=200)),
                ('digest', models.CharField(help_text='SHA-256 of its body', max_length=64)),
                ('kind', models.CharField(blank=True, help_text='what its sender calls this kind of event', max_length=100)),
                ('came', models.CharField(max_length=32)),
                ('detail', models.TextField(blank=True)),
                ('times', models.PositiveIntegerField(default=1, help_text='how often it came')),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('hook', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='jobs.hook')),
                ('job', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='jobs.job')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Routine',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=64)),
                ('agent_name', models.CharField(max_length=64)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('input', models.JSONField(default=dict)),
                ('cron', models.CharField(max_length=100)),
                ('zone', models.CharField(help_text='an IANA time zone, which the expression is read in', max_length=64)),
                ('missed', models.CharField(default=jobs.rules.starters.Missed['ONCE'], max_length=32)),
                ('overlap', models.CharField(default=jobs.rules.starters.Overlap['SKIP'], max_length=32)),
                ('standing', models.CharField(default=jobs.rules.starters.Standing['ON'], max_length=32)),
                ('because', models.TextField(blank=True, help_text='why the studio stopped it')),
                ('due_at', models.DateTimeField(help_text='when it starts its next job', null=True)),
                ('changed_at', models.DateTimeField()),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.AddField(
            model_name='job',
            name='routine',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='jobs.routine'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('routine__isnull', False), models.Q(('state__in', ['CANCELED', 'COMPLETED', 'FAILED']), _negated=True)), fields=['routine'], name='job_live_of_routine'),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('start_token__isnull', True), ('starter__in', [jobs.models.Starter['PERSON'], jobs.models.Starter['API_KEY']]), _connector='OR'), models.Q(('routine__isnull', True), ('starter__in', [jobs.models.Starter['PERSON'], jobs.models.Starter['ROUTINE']]), _connector='OR'), models.Q(('hook__isnull', True), ('starter', jobs.models.Starter['EVENT']), _connector='OR')), name='job_started_through'),
        ),
        migrations.AddField(
            model_name='routinerun',
            name='job',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='jobs.job'),
        ),
        migrations.AddField(
            model_name='routinerun',
            name='routine',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='jobs.routine'),
        ),
        migrations.AddField(
            model_name='routinerun',
            name='tenant',
            field=models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant'),
        ),
        migrations.AddConstraint(
            model_name='hook',
            constraint=models.UniqueConstraint(condition=models.Q(('standing', jobs.rules.starters.Standing['REMOVED']), _negated=True), fields=('tenant', 'name'), name='hook_name_once'),
        ),
        migrations.AddConstraint(
            model_name='hook',
            constraint=models.CheckConstraint(condition=models.Q(('signing__in', ['standard', 'github', 'stripe', 'slack'])), name='hook_signing'),
        ),
        migrations.AddConstraint(
            model_name='hook',
            constraint=models.CheckConstraint(condition=models.Q(('standing__in', ['on', 'paused', 'stopped', 'removed'])), name='hook_standing'),
        ),
        migrations.AddIndex(
            model_name='hookdelivery',
            index=models.Index(fields=['hook', '-last_at'], name='hook_delivery_newest'),
        ),
        migrations.AddConstraint(
            model_name='hookdelivery',
            constraint=models.UniqueConstraint(fields=('hook', 'delivery'), name='hook_delivery_once'),
        ),
        migrations.AddConstraint(
            model_name='hookdelivery',
            constraint=models.CheckConstraint(condition=models.Q(('came__in', ['started', 'unmapped', 'refused', 'ignored'])), name='hook_delivery_came'),
        ),
        migrations.AddConstraint(
            model_name='hookdelivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('came', jobs.rules.starters.Arrived['STARTED']), ('job__isnull', False)), models.Q(models.Q(('came', jobs.rules.starters.Arrived['STARTED']), _negated=True), ('job__isnull', True)), _connector='OR'), name='hook_delivery_has_its_job'),
        ),
        migrations.AddIndex(
            model_name='routine',
            index=models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='routine_due'),
        ),
        migrations.AddConstraint(
            model_name='routine',
            constraint=models.UniqueConstraint(condition=models.Q(('standing', jobs.rules.starters.Standing['REMOVED']), _negated=True), fields=('tenant', 'name'), name='routine_name_once'),
        ),
        migrations.AddConstraint(
            model_name='routine',
            constraint=models.CheckConstraint(condition=models.Q(('missed__in', ['skip', 'once', 'all'])), name='routine_missed'),
        ),
        migrations.AddConstraint(
            model_name='routine',
            constraint=models.CheckConstraint(condition=models.Q(('overlap__in', ['skip', 'allow'])), name='routine_overlap'),
        ),
        migrations.AddConstraint(
            model_name='routine',
            constraint=models.CheckConstraint(condition=models.Q(('standing__in', ['on', 'paused', 'stopped', 'removed'])), name='routine_standing'),
        ),
        migrations.AddConstraint(
            model_name='routine',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('due_at__isnull', False), ('standing', jobs.rules.starters.Standing['ON'])), models.Q(models.Q(('standing', jobs.rules.starters.Standing['ON']), _negated=True), ('due_at__isnull', True)), _connector='OR'), name='routine_due_while_on'),
        ),
        migrations.AddConstraint(
            model_name='routinerun',
            constraint=models.UniqueConstraint(fields=('routine', 'due_at'), name='routine_run_once'),
        ),
        migrations.AddConstraint(
            model_name='routinerun',
            constraint=models.CheckConstraint(condition=models.Q(('came__in', ['started', 'by_hand', 'overlapped', 'missed', 'refused'])), name='routine_run_came'),
        ),
        migrations.AddConstraint(
            model_name='routinerun',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('came__in', [jobs.rules.starters.Ran['BY_HAND'], jobs.rules.starters.Ran['STARTED']]), ('job__isnull', False)), models.Q(models.Q(('came__in', [jobs.rules.starters.Ran['BY_HAND'], jobs.rules.starters.Ran['STARTED']]), _negated=True), ('job__isnull', True)), _connector='OR'), name='routine_run_has_its_job'),
        ),
        referable("jobs_routine", "jobs_hook"),
        refer(
            "jobs_job", {"start_token_id": "tenants_apitoken", "routine_id": "jobs_routine", "hook_id": "jobs_hook"}
        ),
        refer("jobs_routinerun", {"routine_id": "jobs_routine", "job_id": "jobs_job"}),
        refer("jobs_hookdelivery", {"hook_id": "jobs_hook", "job_id": "jobs_job"}),
        protect("jobs_routine", swept=True),
        # what a sweep looks for, and not what is to be started
        migrations.RunSQL(
            "REVOKE SELECT ON jobs_routine FROM oz0_sweep;"
            "GRANT SELECT (id, tenant_id, due_at) ON jobs_routine TO oz0_sweep",
            migrations.RunSQL.noop,
        ),
        protect("jobs_routinerun"),
        protect("jobs_hook"),
        see_named("jobs_hook"),
        protect("jobs_hookdelivery"),
    ]
