"""Row-level security of the runtime, and references that carry the tenant."""

from django.db import migrations

from base.tenancy import protect, referable, refer


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial"), ("catalog", "0002_walls")]
    operations = [
        referable("jobs_job", "jobs_turn", "jobs_call", "jobs_attempt", "jobs_hold", "jobs_body"),
        refer("jobs_job", {"agent_id": "catalog_agent"}),
        refer("jobs_jobcounter", {"job_id": "jobs_job"}),
        refer("jobs_turn", {"job_id": "jobs_job"}),
        refer(
            "jobs_call",
            {
                "job_id": "jobs_job",
                "turn_id": "jobs_turn",
                "function_id": "catalog_function",
                "arguments_body_id": "jobs_body",
                "result_body_id": "jobs_body",
            },
        ),
        refer("jobs_attempt", {"call_id": "jobs_call", "job_id": "jobs_job"}),
        refer("jobs_hold", {"call_id": "jobs_call", "job_id": "jobs_job"}),
        refer("jobs_event", {"job_id": "jobs_job"}),
        protect("jobs_body"),
        protect("jobs_job", swept=True),
        protect("jobs_jobcounter"),
        protect("jobs_turn", swept=True),
        protect("jobs_call", swept=True),
        protect("jobs_attempt", swept=True),
        protect("jobs_hold", swept=True),
        protect("jobs_event", append_only=True),
        migrations.RunSQL("GRANT SELECT ON jobs_node TO oz0_sweep", migrations.RunSQL.noop),
    ]
