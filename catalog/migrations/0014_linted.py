"""Nodes look for what is linted otherwise than it is now, of every tenant."""

from django.db import migrations

from base.tenancy import sweep_too


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0013_arrivals'),
    ]

    operations = [
        sweep_too("catalog_pluginversion"),
        sweep_too("catalog_listing"),
        sweep_too("catalog_lintreport"),
    ]
