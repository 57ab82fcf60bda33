"""Signing in to connections by OAuth."""

import base.ids
import catalog.models
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


from base.tenancy import protect, referable, refer


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0003_connections'),
        ('tenants', '0002_ground'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SignIn',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('client_id', models.TextField(blank=True)),
                ('client_method', models.CharField(blank=True, max_length=32)),
                ('client_entered', models.BooleanField(default=False, help_text='an admin entered the client; else it was registered')),
                ('return_to', models.TextField(blank=True, help_text='the return address that the client was registered with')),
                ('wanted', models.TextField(blank=True, help_text='scopes to ask for; empty: those the server names')),
                ('provider', models.JSONField(default=dict)),
                ('standing', models.CharField(default=catalog.models.Standing['OUT'], max_length=32)),
                ('scopes', models.TextField(blank=True)),
                ('grant', models.PositiveIntegerField(default=0)),
                ('signed_in_at', models.DateTimeField(null=True)),
                ('granted_at', models.DateTimeField(null=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('refresh_due_at', models.DateTimeField(null=True)),
                ('refreshing_until', models.DateTimeField(help_text='while a node asks for new tokens, no other does', null=True)),
                ('failures', models.PositiveIntegerField(default=0, help_text='refreshes that failed in a row')),
                ('trouble', models.TextField(blank=True)),
                ('connection', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='sign_in', to='catalog.connection')),
                ('signed_in_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('refresh_due_at__isnull', False)), fields=['refresh_due_at'], name='sign_in_due')],
                'constraints': [models.CheckConstraint(condition=models.Q(('standing__in', ['out', 'in', 'again'])), name='sign_in_standing'), models.CheckConstraint(condition=models.Q(models.Q(('granted_at__isnull', False), ('standing', 'in')), models.Q(models.Q(('standing', 'in'), _negated=True), ('expires_at__isnull', True), ('refresh_due_at__isnull', True)), _connector='OR'), name='sign_in_has_a_grant')],
            },
        ),
        referable("catalog_connection"),
        refer("catalog_signin", {"connection_id": "catalog_connection"}),
        protect("catalog_signin", swept=True),
    ]
