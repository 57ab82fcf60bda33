"""Row-level security of decisions, and references that carry the tenant."""

from django.db import migrations

from base.tenancy import protect, refer


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_initial"), ("jobs", "0002_walls")]
    operations = [
        refer("approvals_decision", {"hold_id": "jobs_hold"}),
        protect("approvals_decision", append_only=True),
    ]
