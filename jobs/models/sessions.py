"""Harness sessions: programs that are agents (RULES G4, K3–K6)."""

from typing import ClassVar, Final

from django.db import models
from django.db.models import Q

from base.fields import TenantRow, one_of, word
from jobs.rules.states import SESSION_FINAL, SessionState

OVER: Final = sorted(state.value for state in SESSION_FINAL)


class Session(TenantRow):
    """One session of a harness: its program, started once more as another incarnation when its node was lost.

    Its token is dead before anything of it starts again (RULES K6); `token` is that of the newest incarnation.
    """

    job = models.ForeignKey("jobs.Job", on_delete=models.PROTECT, related_name="sessions", db_constraint=False)
    run_number = models.PositiveIntegerField(default=0)
    number = models.PositiveIntegerField(default=1, help_text="n of its calls' keys (RULES K3)")
    incarnation = models.PositiveIntegerField(default=1)
    state = word(default=SessionState.STARTING)
    seq = models.PositiveIntegerField(default=0)
    reason = word(blank=True)
    detail = models.TextField(blank=True)
    due_at = models.DateTimeField(null=True)
    node = models.ForeignKey("jobs.Node", null=True, on_delete=models.PROTECT, related_name="+")
    token = models.ForeignKey(
        "tenants.ApiToken", null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, help_text="when its newest incarnation was given to a node")
    ended_at = models.DateTimeField(null=True)
    continues = models.JSONField(
        null=True, help_text="once it has ended well the job continues as new: what of its input changes, and a note"
    )
    exit_code = models.IntegerField(null=True)
    output = models.TextField(blank=True, help_text="the end of its standard output")
    errors = models.TextField(blank=True, help_text="the end of its standard error")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["job", "run_number", "number"], name="session_once"),
            models.UniqueConstraint(fields=["job"], condition=~Q(state__in=OVER), name="session_one_open"),
            one_of("state", SessionState, "session_state"),
            models.CheckConstraint(
                condition=Q(state__in=OVER, ended_at__isnull=False) | (~Q(state__in=OVER) & Q(ended_at__isnull=True)),
                name="session_ended_when_final",
            ),
            models.CheckConstraint(
                condition=Q(state=SessionState.STARTING, due_at__isnull=False)
                | (~Q(state=SessionState.STARTING) & Q(due_at__isnull=True)),
                name="session_due_while_starting",
            ),
            models.CheckConstraint(
                condition=~Q(state=SessionState.RUNNING)
                | Q(node__isnull=False, token__isnull=False, started_at__isnull=False),
                name="session_runs_somewhere",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["state"], condition=~Q(state__in=OVER), name="session_open"),
        ]
