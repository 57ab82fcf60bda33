"""Sandboxed tools, and what their servers were kept apart by."""


from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0004_sign_ins'),
        ('tenants', '0002_ground'),
    ]

    operations = [
        migrations.AddField(
            model_name='tool',
            name='isolation',
            field=models.CharField(blank=True, help_text='what kept its server apart when last listed; empty unless sandboxed', max_length=32),
        ),
        migrations.AddField(
            model_name='tool',
            name='sandbox',
            field=models.JSONField(help_text='what a sandboxed tool asks for, null for every other', null=True),
        ),
        migrations.AddConstraint(
            model_name='tool',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('sandbox__isnull', False), ('transport', 'sandbox')), models.Q(models.Q(('transport', 'sandbox'), _negated=True), ('sandbox__isnull', True)), _connector='OR'), name='tool_sandboxed_or_not'),
        ),
    ]
