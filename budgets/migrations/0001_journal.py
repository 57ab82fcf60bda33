"""The spend journal: projects, limits, operations with their checks, reservations, receipts and events (RULES S)."""

import base.ids
import budgets.rules.words
import datetime
import django.db.models.deletion
import django.db.models.expressions
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


# The time that a UUIDv7 says by itself, to the millisecond.
ID_TIME = """
CREATE FUNCTION oz0_id_time(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT timestamptz 'epoch'
        + ('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint * interval '1 millisecond'
$$;
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('tenants', '0008_logins'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(ID_TIME, "DROP FUNCTION oz0_id_time(uuid)"),
        migrations.CreateModel(
            name='Key',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('scope', models.CharField(max_length=32)),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('ends', models.CharField(help_text='its last characters, to know it by', max_length=8)),
                ('refresh_hash', models.CharField(max_length=64, null=True, unique=True)),
                ('old_refresh_hash', models.CharField(max_length=64, null=True, unique=True)),
                ('access_until', models.DateTimeField(help_text="when a pair's access ends, until it is renewed", null=True)),
                ('made_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('used_at', models.DateTimeField(help_text='when it was last used, to the minute', null=True)),
                ('paced_until', models.DateTimeField(help_text='how far its questions reach (tenants.rules.pace)', null=True)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Project',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=64)),
                ('agent', models.CharField(blank=True, help_text='whose requests to models are counted here', max_length=64)),
                ('zone', models.CharField(default='UTC', help_text='where its days and months begin at midnight', max_length=64)),
                ('unconfirmed', models.CharField(default=budgets.rules.words.Unconfirmed['IN_DOUBT'], help_text='what becomes of amounts that nobody confirms', max_length=32)),
                ('made_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('digest', models.CharField(help_text='of its checks in their order (rules.checks)', max_length=64)),
                ('size', models.PositiveSmallIntegerField()),
                ('standing', models.CharField(default=budgets.rules.words.OperationState['RUNNING'], max_length=32)),
                ('expires_at', models.DateTimeField(help_text="a day after its id's own time")),
                ('claimed_at', models.DateTimeField()),
                ('touched_at', models.DateTimeField(help_text='when whoever executes it was last heard of')),
                ('ended_at', models.DateTimeField(null=True)),
                ('of_job', models.UUIDField(null=True)),
                ('of_turn', models.UUIDField(null=True)),
                ('key', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='budgets.key')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('project', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='budgets.project')),
            ],
        ),
        migrations.CreateModel(
            name='Limit',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('period', models.CharField(max_length=32)),
                ('mode', models.CharField(max_length=32)),
                ('amount', models.DecimalField(decimal_places=12, max_digits=30)),
                ('changed_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('project', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='limits', to='budgets.project')),
            ],
        ),
        migrations.AddField(
            model_name='key',
            name='project',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='keys', to='budgets.project'),
        ),
        migrations.CreateModel(
            name='Reservation',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('index', models.PositiveSmallIntegerField()),
                ('standing', models.CharField(default=budgets.rules.words.ReservationState['LIVE'], max_length=32)),
                ('amount', models.DecimalField(decimal_places=12, max_digits=30)),
                ('counted_at', models.DateTimeField()),
                ('checked_at', models.DateTimeField()),
                ('due_at', models.DateTimeField(null=True)),
                ('spent', models.DecimalField(decimal_places=12, max_digits=30, null=True)),
                ('priced', models.BooleanField(default=True, help_text='what it cost is known, and not only what was estimated')),
                ('closed_at', models.DateTimeField(null=True)),
                ('closed_by', models.CharField(blank=True, help_text='who confirmed or released it', max_length=200)),
                ('note', models.TextField(blank=True)),
                ('model', models.TextField()),
                ('provider', models.TextField()),
                ('of_job', models.UUIDField(null=True)),
                ('of_turn', models.UUIDField(null=True)),
                ('operation', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='budgets.operation')),
                ('project', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='budgets.project')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Receipt',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('digest', models.CharField(max_length=64)),
                ('used', models.JSONField(help_text='what was sent')),
                ('confirmed_at', models.DateTimeField()),
                ('project', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='budgets.project')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('reservation', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='receipts', to='budgets.reservation')),
            ],
        ),
        migrations.CreateModel(
            name='Item',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('index', models.PositiveSmallIntegerField()),
                ('asked', models.JSONField(help_text='the whole check')),
                ('standing', models.CharField(default=budgets.rules.words.ItemState['UNATTEMPTED'], max_length=32)),
                ('error_code', models.CharField(blank=True, max_length=32)),
                ('result', models.JSONField(null=True)),
                ('checked_at', models.DateTimeField(null=True)),
                ('estimate', models.DecimalField(decimal_places=12, max_digits=30, null=True)),
                ('reservation_expires_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('operation', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='items', to='budgets.operation')),
                ('reservation', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='budgets.reservation')),
            ],
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=256)),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('calls', models.PositiveIntegerField(default=0)),
                ('denied', models.PositiveIntegerField(default=0)),
                ('input_tokens', models.BigIntegerField(default=0)),
                ('output_tokens', models.BigIntegerField(default=0)),
                ('cost', models.DecimalField(decimal_places=12, default=Decimal('0'), max_digits=30)),
                ('project', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='budgets.project')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='SpendEvent',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('call_id', models.CharField(max_length=256)),
                ('attempt_index', models.PositiveIntegerField()),
                ('instance_id', models.CharField(max_length=256)),
                ('timestamp', models.DateTimeField()),
                ('status', models.CharField(max_length=32)),
                ('model', models.TextField()),
                ('provider', models.TextField()),
                ('modality', models.CharField(max_length=32)),
                ('input_tokens', models.BigIntegerField()),
                ('output_tokens', models.BigIntegerField()),
                ('cost', models.DecimalField(decimal_places=12, max_digits=30, null=True)),
                ('tags', models.JSONField(default=dict)),
                ('digest', models.CharField(help_text='of all that was told', max_length=64)),
                ('received_at', models.DateTimeField()),
                ('project', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='budgets.project')),
                ('run', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='budgets.run')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='TagValue',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('key', models.CharField(max_length=64)),
                ('value', models.CharField(max_length=256)),
                ('project', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='budgets.project')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Tally',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('period', models.CharField(max_length=32)),
                ('starts_at', models.DateTimeField()),
                ('reserved', models.DecimalField(decimal_places=12, default=Decimal('0'), max_digits=30)),
                ('in_doubt', models.DecimalField(decimal_places=12, default=Decimal('0'), max_digits=30)),
                ('spent', models.DecimalField(decimal_places=12, default=Decimal('0'), max_digits=30)),
                ('project', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='tallies', to='budgets.project')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.UniqueConstraint(condition=models.Q(('agent', '')), fields=('tenant', 'name'), name='budget_name_once'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.UniqueConstraint(condition=models.Q(('agent', ''), _negated=True), fields=('tenant', 'agent'), name='budget_agent_once'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('unconfirmed__in', ['in_doubt', 'lapse'])), name='budget_unconfirmed'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['project', '-id'], name='operation_newest'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(condition=models.Q(('standing', budgets.rules.words.OperationState['RUNNING'])), fields=['touched_at'], name='operation_running'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['expires_at'], name='operation_expiry'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('standing__in', ['running', 'finished', 'interrupted'])), name='operation_standing'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('size__gte', 1), ('size__lte', 32)), name='operation_size'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('expires_at', django.db.models.expressions.CombinedExpression(models.Func(models.F('id'), function='oz0_id_time', output_field=models.DateTimeField()), '+', models.Value(datetime.timedelta(days=1), output_field=models.DurationField()), output_field=models.DateTimeField()))), name='operation_lives_a_day'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('standing', budgets.rules.words.OperationState['RUNNING'])), models.Q(models.Q(('standing', budgets.rules.words.OperationState['RUNNING']), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='operation_ended_when_not_running'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.UniqueConstraint(fields=('project', 'period', 'mode'), name='limit_once'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.CheckConstraint(condition=models.Q(('period__in', ['hour', 'day', 'month'])), name='limit_period'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.CheckConstraint(condition=models.Q(('mode__in', ['alert_only', 'hard_deny'])), name='limit_mode'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 0)), name='limit_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='key',
            constraint=models.CheckConstraint(condition=models.Q(('scope__in', ['full', 'read_only'])), name='budget_key_scope'),
        ),
        migrations.AddConstraint(
            model_name='key',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('access_until__isnull', True), ('old_refresh_hash__isnull', True), ('refresh_hash__isnull', True)), models.Q(('access_until__isnull', False), ('expires_at__isnull', False), ('refresh_hash__isnull', False)), _connector='OR'), name='budget_key_or_pair'),
        ),
        migrations.AddIndex(
            model_name='reservation',
            index=models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='reservation_due'),
        ),
        migrations.AddIndex(
            model_name='reservation',
            index=models.Index(condition=models.Q(('due_at__isnull', False)), fields=['project', '-id'], name='reservation_open'),
        ),
        migrations.AddIndex(
            model_name='reservation',
            index=models.Index(fields=['project', 'counted_at'], name='reservation_counted'),
        ),
        migrations.AddConstraint(
            model_name='reservation',
            constraint=models.UniqueConstraint(fields=('operation', 'index'), name='reservation_once'),
        ),
        migrations.AddConstraint(
            model_name='reservation',
            constraint=models.CheckConstraint(condition=models.Q(('standing__in', ['live', 'in_doubt', 'confirmed', 'released', 'lapsed', 'expired'])), name='reservation_standing'),
        ),
        migrations.AddConstraint(
            model_name='reservation',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 0)), name='reservation_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='reservation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('due_at', django.db.models.expressions.CombinedExpression(models.F('checked_at'), '+', models.Value(datetime.timedelta(seconds=300), output_field=models.DurationField()), output_field=models.DateTimeField())), ('standing', budgets.rules.words.ReservationState['LIVE'])), models.Q(('due_at', django.db.models.expressions.CombinedExpression(models.F('checked_at'), '+', models.Value(datetime.timedelta(days=1), output_field=models.DurationField()), output_field=models.DateTimeField())), ('standing', budgets.rules.words.ReservationState['IN_DOUBT'])), models.Q(models.Q(('standing__in', [budgets.rules.words.ReservationState['IN_DOUBT'], budgets.rules.words.ReservationState['LIVE']]), _negated=True), ('due_at__isnull', True)), _connector='OR'), name='reservation_due_while_open'),
        ),
        migrations.AddConstraint(
            model_name='reservation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', True), ('standing__in', [budgets.rules.words.ReservationState['IN_DOUBT'], budgets.rules.words.ReservationState['LIVE']])), models.Q(models.Q(('standing__in', [budgets.rules.words.ReservationState['IN_DOUBT'], budgets.rules.words.ReservationState['LIVE']]), _negated=True), ('closed_at__isnull', False)), _connector='OR'), name='reservation_closed_when_not_open'),
        ),
        migrations.AddConstraint(
            model_name='reservation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('spent__gte', 0), ('spent__isnull', False), ('standing', budgets.rules.words.ReservationState['CONFIRMED'])), models.Q(models.Q(('standing', budgets.rules.words.ReservationState['CONFIRMED']), _negated=True), ('spent__isnull', True)), _connector='OR'), name='reservation_spent_when_confirmed'),
        ),
        migrations.AddConstraint(
            model_name='receipt',
            constraint=models.UniqueConstraint(fields=('reservation',), name='receipt_once'),
        ),
        migrations.AddConstraint(
            model_name='item',
            constraint=models.UniqueConstraint(fields=('operation', 'index'), name='item_once'),
        ),
        migrations.AddConstraint(
            model_name='item',
            constraint=models.CheckConstraint(condition=models.Q(('index__lt', 32)), name='item_index'),
        ),
        migrations.AddConstraint(
            model_name='item',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('checked_at__isnull', False), ('error_code', ''), ('result__isnull', False), ('standing', budgets.rules.words.ItemState['COMPLETED'])), models.Q(('error_code', budgets.rules.words.ItemError['CHECK_FAILED']), ('result__isnull', True), ('standing', budgets.rules.words.ItemState['FAILED'])), models.Q(('error_code', budgets.rules.words.ItemError['RESERVATION_UNKNOWN']), ('result__isnull', True), ('standing', budgets.rules.words.ItemState['UNKNOWN'])), models.Q(('checked_at__isnull', True), ('error_code', ''), ('result__isnull', True), ('standing', budgets.rules.words.ItemState['UNATTEMPTED'])), _connector='OR'), name='item_carries_what_it_says'),
        ),
        migrations.AddConstraint(
            model_name='item',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('reservation__isnull', True), ('reservation_expires_at__isnull', True)), models.Q(('reservation__isnull', False), ('reservation_expires_at', django.db.models.expressions.CombinedExpression(models.F('checked_at'), '+', models.Value(datetime.timedelta(seconds=300), output_field=models.DurationField()), output_field=models.DateTimeField())), ('standing', budgets.rules.words.ItemState['COMPLETED'])), _connector='OR'), name='item_authority_ends'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['project', '-id'], name='run_newest'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(fields=('project', 'name'), name='run_of_program_once'),
        ),
        migrations.AddIndex(
            model_name='spendevent',
            index=models.Index(fields=['project', '-id'], name='spend_event_newest'),
        ),
        migrations.AddConstraint(
            model_name='spendevent',
            constraint=models.UniqueConstraint(fields=('project', 'call_id', 'attempt_index'), name='spend_event_once'),
        ),
        migrations.AddConstraint(
            model_name='spendevent',
            constraint=models.UniqueConstraint(fields=('project', 'timestamp', 'instance_id'), name='spend_event_legacy_once'),
        ),
        migrations.AddConstraint(
            model_name='spendevent',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['success', 'error', 'budget_denied'])), name='spend_event_status'),
        ),
        migrations.AddConstraint(
            model_name='spendevent',
            constraint=models.CheckConstraint(condition=models.Q(('input_tokens__gte', 0), ('output_tokens__gte', 0)), name='spend_event_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='tagvalue',
            constraint=models.UniqueConstraint(fields=('project', 'key', 'value'), name='tag_value_once'),
        ),
        migrations.AddConstraint(
            model_name='tally',
            constraint=models.UniqueConstraint(fields=('project', 'period', 'starts_at'), name='tally_once'),
        ),
        migrations.AddConstraint(
            model_name='tally',
            constraint=models.CheckConstraint(condition=models.Q(('period__in', ['hour', 'day', 'month'])), name='tally_period'),
        ),
        migrations.AddConstraint(
            model_name='tally',
            constraint=models.CheckConstraint(condition=models.Q(('in_doubt__gte', 0), ('reserved__gte', 0), ('spent__gte', 0)), name='tally_not_negative'),
        ),
    ]
