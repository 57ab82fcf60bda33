"""Harness sessions: programs that are agents, and the calls that each incarnation of one asked for (RULES K3–K6)."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

import base.ids
from base.tenancy import protect, refer, referable

STATES = ["starting", "running", "settling", "lost", "asking", "ended", "stopped"]
OVER = Q(state__in=["ended", "stopped"])


def _to(table: str, *, linked: bool = False, **options: object) -> "models.ForeignKey[models.Model, models.Model]":
    given = {"on_delete": django.db.models.deletion.PROTECT, "related_name": "+", **options}
    return models.ForeignKey(to=table, db_constraint=linked, **given)  # type: ignore[arg-type]


class Migration(migrations.Migration):
    dependencies = [("jobs", "0014_exporter"), ("tenants", "0007_session_tokens")]
    operations = [
        migrations.CreateModel(
            "Session",
            [
                (
                    "id",
                    models.UUIDField(default=base.ids.new, editable=False, primary_key=True, serialize=False),
                ),
                ("run_number", models.PositiveIntegerField(default=0)),
                ("number", models.PositiveIntegerField(default=1, help_text="n of its calls' keys (RULES K3)")),
                ("incarnation", models.PositiveIntegerField(default=1)),
                ("state", models.CharField(default="starting", max_length=32)),
                ("seq", models.PositiveIntegerField(default=0)),
                ("reason", models.CharField(blank=True, max_length=32)),
                ("detail", models.TextField(blank=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "started_at",
                    models.DateTimeField(help_text="when its newest incarnation was given to a node", null=True),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                ("exit_code", models.IntegerField(null=True)),
                ("output", models.TextField(blank=True, help_text="the end of its standard output")),
                ("errors", models.TextField(blank=True, help_text="the end of its standard error")),
                ("job", _to("jobs.job", related_name="sessions")),
                ("node", _to("jobs.node", linked=True, null=True)),
                ("tenant", _to("tenants.tenant", linked=True, editable=False)),
                ("token", _to("tenants.apitoken", null=True)),
            ],
        ),
        referable("jobs_session"),
        refer("jobs_session", {"job_id": "jobs_job", "token_id": "tenants_apitoken"}),
        protect("jobs_session", swept=True),
        migrations.RemoveConstraint("job", "job_driver"),
        migrations.AddConstraint(
            "job", models.CheckConstraint(condition=Q(driver__in=["model", "outside", "harness"]), name="job_driver")
        ),
        migrations.AddField("call", "session", _to("jobs.session", null=True, related_name="calls")),
        migrations.AddField(
            "call",
            "incarnation",
            models.PositiveIntegerField(default=0, help_text="of its session; 0 without one"),
        ),
        refer("jobs_call", {"session_id": "jobs_session"}),
        migrations.AddIndex(
            "call",
            models.Index(fields=["session", "args_digest"], condition=Q(session__isnull=False), name="call_in_session"),
        ),
        migrations.AddConstraint(
            "call",
            models.CheckConstraint(
                condition=Q(session__isnull=True, incarnation=0) | Q(session__isnull=False, incarnation__gte=1),
                name="call_of_an_incarnation",
            ),
        ),
        migrations.AddIndex("session", models.Index(fields=["state"], condition=~OVER, name="session_open")),
        migrations.AddConstraint(
            "session", models.UniqueConstraint(fields=["job", "run_number", "number"], name="session_once")
        ),
        migrations.AddConstraint(
            "session", models.UniqueConstraint(fields=["job"], condition=~OVER, name="session_one_open")
        ),
        migrations.AddConstraint(
            "session", models.CheckConstraint(condition=Q(state__in=STATES), name="session_state")
        ),
        migrations.AddConstraint(
            "session",
            models.CheckConstraint(
                condition=Q(state__in=["ended", "stopped"], ended_at__isnull=False)
                | (~OVER & Q(ended_at__isnull=True)),
                name="session_ended_when_final",
            ),
        ),
        migrations.AddConstraint(
            "session",
            models.CheckConstraint(
                condition=Q(state="starting", due_at__isnull=False) | (~Q(state="starting") & Q(due_at__isnull=True)),
                name="session_due_while_starting",
            ),
        ),
        migrations.AddConstraint(
            "session",
            models.CheckConstraint(
                condition=~Q(state="running") | Q(node__isnull=False, token__isnull=False, started_at__isnull=False),
                name="session_runs_somewhere",
            ),
        ),
    ]
