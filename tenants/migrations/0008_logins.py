"""Tokens of people, and the logins by which the command asks for one."""

import base.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0007_session_tokens'),
    ]

    operations = [
        migrations.AddField(
            model_name='apitoken',
            name='as_person',
            field=models.BooleanField(default=False, help_text='of `oz0 login`: what it starts, its person has started'),
        ),
        migrations.CreateModel(
            name='LoginAsk',
            fields=[
                ('id', models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False)),
                ('code', models.CharField(help_text='what the command and the page show alike', max_length=16)),
                ('challenge', models.CharField(help_text='SHA-256 of what only the command knows', max_length=64)),
                ('machine', models.CharField(help_text='as it names itself', max_length=80)),
                ('address', models.CharField(max_length=64)),
                ('asked_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('answered_at', models.DateTimeField(null=True)),
                ('allowed', models.BooleanField(default=False)),
                ('how', models.CharField(blank=True, help_text='how the person had signed in, and from where', max_length=200)),
                ('taken_at', models.DateTimeField(null=True)),
                ('person', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('place', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='login_expiry')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('allowed', False), ('answered_at__isnull', True), ('person__isnull', True), ('place__isnull', True)), models.Q(('answered_at__isnull', False), ('person__isnull', False), ('place__isnull', False)), _connector='OR'), name='login_answered_by_someone'), models.CheckConstraint(condition=models.Q(('taken_at__isnull', True), ('allowed', True), _connector='OR'), name='login_taken_when_allowed')],
            },
        ),
    ]
