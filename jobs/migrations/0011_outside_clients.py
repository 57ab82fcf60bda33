"""Jobs of outside clients, which call through the gateway (RULES G4, G7)."""

import django.db.models.deletion
from django.db import migrations, models

from base.tenancy import refer

FINAL = ["CANCELED", "COMPLETED", "FAILED"]
OUTSIDE = models.Q(driver="outside", token__isnull=False, idle_at__isnull=False)
INSIDE = ~models.Q(driver="outside") & models.Q(token__isnull=True, client_session="", idle_at__isnull=True)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0010_turn_answers"), ("tenants", "0005_patience")]
    operations = [
        migrations.AddField("job", "driver", models.CharField(default="model", max_length=32)),
        migrations.AddField(
            "job",
            "token",
            models.ForeignKey(
                db_constraint=False,
                help_text="the one its outside client calls with",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="tenants.apitoken",
            ),
        ),
        migrations.AddField(
            "job",
            "client_session",
            models.CharField(blank=True, default="", help_text="that client's MCP session, if it has one", max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            "job", "idle_at", models.DateTimeField(help_text="when it ends for want of a call (RULES G7)", null=True)
        ),
        refer("jobs_job", {"token_id": "tenants_apitoken"}),
        migrations.AddConstraint(
            "job", models.CheckConstraint(condition=models.Q(driver__in=["model", "outside"]), name="job_driver")
        ),
        migrations.AddConstraint(
            "job", models.CheckConstraint(condition=OUTSIDE | INSIDE, name="job_of_a_client_has_its_token")
        ),
        migrations.AddConstraint(
            "job",
            models.UniqueConstraint(
                fields=["token", "client_session"],
                condition=models.Q(token__isnull=False) & ~models.Q(state__in=FINAL),
                name="job_one_open_of_a_client",
            ),
        ),
        migrations.AddIndex(
            "job",
            models.Index(fields=["idle_at"], condition=models.Q(driver="outside", state="running"), name="job_idle"),
        ),
    ]
