"""Where a further attempt goes on, or why it starts over."""


from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0002_walls'),
        ('tenants', '0002_ground'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='odd_token',
            field=models.BooleanField(default=False, help_text='a token came that is none'),
        ),
        migrations.AddField(
            model_name='attempt',
            name='resume_progress',
            field=models.FloatField(help_text='the progress that came with the token (RULES P3)', null=True),
        ),
        migrations.AddField(
            model_name='attempt',
            name='resume_scope',
            field=models.CharField(blank=True, help_text='the connection and function of its token', max_length=64),
        ),
        migrations.AddField(
            model_name='attempt',
            name='resume_token',
            field=models.CharField(blank=True, help_text='the last valid token it was given', max_length=256),
        ),
        migrations.AddField(
            model_name='attempt',
            name='resume_total',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='attempt',
            name='resumed_from',
            field=models.FloatField(help_text='the progress it went on from', null=True),
        ),
        migrations.AddField(
            model_name='attempt',
            name='resumed_of',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='attempt',
            name='started_over_because',
            field=models.CharField(blank=True, max_length=32),
        ),
        migrations.AddConstraint(
            model_name='attempt',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('resume_progress__isnull', True), ('resume_token', '')), models.Q(models.Q(('resume_token', ''), _negated=True), ('resume_progress__isnull', False)), _connector='OR'), name='attempt_token_with_progress'),
        ),
        migrations.AddConstraint(
            model_name='attempt',
            constraint=models.CheckConstraint(condition=models.Q(('resumed_from__isnull', True), ('started_over_because', ''), _connector='OR'), name='attempt_resumed_or_started_over'),
        ),
    ]
