"""The durable runtime's rows. PostgreSQL forbids the impossible ones; only `operations/moves.py` writes a state."""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from base import ids
from base.fields import TenantRow, one_of, word
from jobs.models.exporters import Exporter
from jobs.models.sessions import Session
from jobs.models.starters import Hook, HookDelivery, Routine, RoutineRun
from jobs.rules.orders import End
from jobs.rules.states import (
    ASKING,
    CALL_FINAL,
    JOB_FINAL,
    MOVING,
    AttemptState,
    CallState,
    Effect,
    HoldKind,
    HoldState,
    JobState,
    NodeState,
    TurnState,
)

__all__ = [
    "END_STATES",
    "Attempt",
    "Body",
    "Call",
    "Event",
    "Exporter",
    "Hold",
    "Hook",
    "HookDelivery",
    "Job",
    "JobCounter",
    "Node",
    "Routine",
    "RoutineRun",
    "Session",
    "Starter",
    "Turn",
]


class Starter(StrEnum):
    """What started a job; it decides what an unknown outcome does (RULES U5, G1)."""

    PERSON = "person"
    API_KEY = "api_key"
    ROUTINE = "routine"
    EVENT = "event"


class Driver(StrEnum):
    """What decides on a job's next call."""

    MODEL = "model"
    OUTSIDE = "outside"  # a client that calls through the gateway with a token (RULES G7)
    HARNESS = "harness"  # a program that a node runs and that calls through the gateway too (RULES G4)


def _values(states: frozenset[Any]) -> list[str]:
    return sorted(state.value for state in states)


class Node(models.Model):
    """One worker process. It serves every tenant, so its row belongs to none."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    name = models.CharField(max_length=200)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    slots = models.PositiveIntegerField()
    state = word(default=NodeState.ALIVE)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    consumed_at = models.DateTimeField(null=True, help_text="when it last took a message that proves the broker's way")
    ended_at = models.DateTimeField(null=True)
    servers = models.JSONField(default=list, help_text="its servers: tool, state, why, restarts")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [one_of("state", NodeState, "node_state")]


class Body(TenantRow):
    """A value too large for a row that is listed, loaded only when somebody opens it."""

    data = models.JSONField()
    size = models.PositiveIntegerField(help_text="bytes of its JSON")


class Job(TenantRow):
    """One run of an agent."""

    agent = models.ForeignKey("catalog.Agent", on_delete=models.PROTECT, related_name="+", db_constraint=False)
    agent_name = models.CharField(max_length=64)
    title = models.CharField(max_length=200)
    starter = word()
    started_by = models.ForeignKey("tenants.User", null=True, on_delete=models.PROTECT, related_name="+")
    start_token = models.ForeignKey(
        "tenants.ApiToken",
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        help_text="what a program started it with, or a person by the command of another machine",
    )
    routine = models.ForeignKey(Routine, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    hook = models.ForeignKey(Hook, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    start_key = models.CharField(max_length=64, blank=True, help_text="what makes a repeated start this one")
    input = models.JSONField(default=dict)
    run_number = models.PositiveIntegerField(default=0, help_text="how often it continued as new (RULES G3)")
    state = word(default=JobState.QUEUED)
    seq = models.PositiveIntegerField(default=0)
    reason = word(blank=True)
    detail = models.TextField(blank=True)
    ends_as = word(blank=True, help_text="while cancelling: CANCELED or FAILED")
    failure_kind = word(blank=True)
    on_unknown = word(help_text="ask or fail, resolved at the start (RULES U5)")
    output = models.TextField(blank=True)
    next_activity = models.PositiveIntegerField(default=1)
    calls_before = models.PositiveIntegerField(default=0, help_text="calls of the runs before this one")
    turns_made = models.PositiveIntegerField(default=0)
    waiting_since = models.DateTimeField(null=True, help_text="since when only people are waited for")
    turn_due_at = models.DateTimeField(null=True)
    one_call = models.BooleanField(default=False, help_text="it makes one call, which a person asked for, and no turn")
    driver = word(default=Driver.MODEL)
    token = models.ForeignKey(
        "tenants.ApiToken",
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        help_text="the one its outside client calls with",
    )
    client_session = models.CharField(max_length=64, blank=True, help_text="that client's MCP session, if it has one")
    idle_at = models.DateTimeField(null=True, help_text="when it ends for want of a call (RULES G7)")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True, help_text="when its agent's limit of minutes is reached")
    tainted_at = models.DateTimeField(null=True, help_text="when it first read another plugin's manual (RULES M3)")
    tainted_by = models.CharField(max_length=130, blank=True, help_text="that skill, as <plugin>/<skill>")
    cancel_requested_at = models.DateTimeField(null=True)
    cancel_requested_by = models.ForeignKey("tenants.User", null=True, on_delete=models.PROTECT, related_name="+")

    @property
    def calls_made(self) -> int:
        """How many calls it has asked for, in all its runs."""
        return self.calls_before + self.next_activity - 1

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("state", JobState, "job_state"),
            one_of("starter", Starter, "job_starter"),
            models.CheckConstraint(
                condition=Q(state__in=_values(JOB_FINAL), ended_at__isnull=False)
                | (~Q(state__in=_values(JOB_FINAL)) & Q(ended_at__isnull=True)),
                name="job_ended_when_final",
            ),
            models.CheckConstraint(
                condition=(Q(state=JobState.CANCELLING) & ~Q(ends_as="")) | ~Q(state=JobState.CANCELLING),
                name="job_cancelling_ends_as",
            ),
            models.CheckConstraint(
                condition=Q(turn_due_at__isnull=True) | Q(state__in=[JobState.QUEUED, JobState.RUNNING]),
                name="job_turn_due_while_live",
            ),
            models.CheckConstraint(condition=Q(on_unknown__in=["ask", "fail"]), name="job_on_unknown"),
            models.CheckConstraint(
                condition=Q(tainted_at__isnull=True, tainted_by="") | (Q(tainted_at__isnull=False) & ~Q(tainted_by="")),
                name="job_tainted_by_something",
            ),
            one_of("driver", Driver, "job_driver"),
            models.CheckConstraint(
                condition=Q(driver=Driver.OUTSIDE, token__isnull=False, idle_at__isnull=False)
                | (~Q(driver=Driver.OUTSIDE) & Q(token__isnull=True, client_session="", idle_at__isnull=True)),
                name="job_of_a_client_has_its_token",
            ),
            models.UniqueConstraint(
                fields=["token", "client_session"],
                condition=Q(token__isnull=False) & ~Q(state__in=_values(JOB_FINAL)),
                name="job_one_open_of_a_client",
            ),
            models.UniqueConstraint(
                fields=["tenant", "starter", "started_by", "start_key"],
                condition=~Q(start_key=""),
                nulls_distinct=False,
                name="job_started_once",
            ),
            models.CheckConstraint(
                condition=Q(Q(start_token__isnull=True) | Q(starter__in=[Starter.PERSON, Starter.API_KEY]))
                & Q(Q(routine__isnull=True) | Q(starter__in=[Starter.PERSON, Starter.ROUTINE]))
                & Q(Q(hook__isnull=True) | Q(starter=Starter.EVENT)),
                name="job_started_through",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["turn_due_at"], condition=Q(turn_due_at__isnull=False), name="job_turn_due"),
            models.Index(fields=["idle_at"], condition=Q(driver="outside", state="running"), name="job_idle"),
            models.Index(fields=["tenant", "-id"], name="job_newest"),
            models.Index(fields=["tenant", "state", "-id"], name="job_by_state"),
            models.Index(fields=["tenant", "agent_name", "-id"], name="job_by_agent"),
            models.Index(
                fields=["routine"],
                condition=Q(routine__isnull=False) & ~Q(state__in=_values(JOB_FINAL)),
                name="job_live_of_routine",
            ),
            models.Index(fields=["tenant", "ended_at", "id"], condition=Q(ended_at__isnull=False), name="job_ended"),
        ]


class JobCounter(models.Model):
    """The job's event counter, in a row of its own and locked last but for the audit head (MACHINES 2)."""

    job = models.OneToOneField(Job, primary_key=True, on_delete=models.PROTECT, related_name="counter")
    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.PROTECT, related_name="+")
    events = models.BigIntegerField(default=0)


class Turn(TenantRow):
    """One question to the model and its answer."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="turns", db_constraint=False)
    number = models.PositiveIntegerField(help_text="counted over all runs of the job")
    run_number = models.PositiveIntegerField(default=0)
    state = word(default=TurnState.ASKED)
    seq = models.PositiveIntegerField(default=0)
    node = models.ForeignKey(Node, null=True, on_delete=models.PROTECT, related_name="+")
    asked = models.PositiveIntegerField(default=1, help_text="how often it was asked: again when its node was lost")
    asked_at = models.DateTimeField()
    limit_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    say = models.TextField(blank=True)
    wanted = models.JSONField(default=list, help_text="the calls the model asked for, as it wrote them")
    usage = models.JSONField(default=dict)
    model = models.CharField(max_length=200, blank=True)
    error = models.TextField(blank=True)
    sums_up = models.BooleanField(default=False, help_text="it asks for a summary of its run (RULES G3)")
    notes = models.JSONField(default=list, help_text="the late calls that its model was told of, by their ids")
    response = models.ForeignKey(Body, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    to_confirm = models.JSONField(default=list, help_text="what the spend journal is still to be told of its requests")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["job", "number"], name="turn_once"),
            models.UniqueConstraint(fields=["job"], condition=Q(state="asked"), name="turn_one_open"),
            one_of("state", TurnState, "turn_state"),
            models.CheckConstraint(
                condition=(Q(state=TurnState.ASKED) & Q(ended_at__isnull=True))
                | (~Q(state=TurnState.ASKED) & Q(ended_at__isnull=False)),
                name="turn_ended_when_closed",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["limit_at"], condition=Q(state="asked"), name="turn_open"),
            models.Index(fields=["ended_at"], condition=~Q(to_confirm=[]), name="turn_to_confirm"),
        ]


class CallQuerySet(models.QuerySet["Call"]):
    """The vocabulary calls are found by."""

    def due(self, now: datetime) -> "CallQuerySet":
        """Calls a node may claim now, if their job still runs."""
        return self.filter(due_at__lte=now, state__in=[CallState.QUEUED, CallState.RETRYING])


class Call(TenantRow):
    """One call of one function, from request to its end. Its key is fixed at submit (RULES K1, K7).

    Its arguments are too, but for a person who edits them while it waits for approval (RULES A9); `edited_from` are
    then those that the model asked for. `again_of` is the call that expired, when a person asked again (RULES A8).
    """

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="calls", db_constraint=False)
    turn = models.ForeignKey(Turn, null=True, on_delete=models.PROTECT, related_name="calls", db_constraint=False)
    activity = models.PositiveIntegerField()
    run_number = models.PositiveIntegerField(default=0)
    function = models.ForeignKey(
        "catalog.Function", null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )
    tool_slug = models.CharField(max_length=48, blank=True)
    function_name = models.CharField(max_length=128, blank=True)
    model_name = models.CharField(max_length=200, help_text="the name the model used, also when it names nothing")
    asked_through = models.CharField(
        max_length=64, blank=True, help_text="the platform's function it was asked for through, as the model names it"
    )
    model_call_id = models.CharField(max_length=128, blank=True)
    kind = word(blank=True)
    read_only = models.BooleanField(default=False)
    retry_safe = models.BooleanField(default=False)
    honours_key = models.BooleanField(default=False)
    entry_digest = models.CharField(max_length=64, blank=True)
    arguments = models.JSONField(null=True)
    arguments_body = models.ForeignKey(Body, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    args_digest = models.CharField(max_length=64)
    edited_from = models.ForeignKey(Body, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    again_of = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    key = models.CharField(max_length=300)
    session = models.ForeignKey(Session, null=True, on_delete=models.PROTECT, related_name="calls", db_constraint=False)
    incarnation = models.PositiveIntegerField(default=0, help_text="of its session; 0 without one")
    state = word()
    seq = models.PositiveIntegerField(default=0)
    reason = word(blank=True)
    detail = models.TextField(blank=True)
    effect = word(default=Effect.NONE)
    rule_id = models.CharField(max_length=100, blank=True, help_text="the policy rule that judged it last")
    rule_digest = models.CharField(max_length=64, blank=True)
    policy_number = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    attempts_made = models.PositiveIntegerField(default=0)
    openings_failed = models.PositiveIntegerField(default=0, help_text="how often its server would not start")
    result_text = models.TextField(blank=True, help_text="what the model reads, cut at 8 KiB; the whole is in the body")
    result_body = models.ForeignKey(Body, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = CallQuerySet.as_manager()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["job", "run_number", "activity"], name="call_activity_once"),
            models.UniqueConstraint(fields=["again_of"], name="call_asked_again_once"),
            one_of("state", CallState, "call_state"),
            one_of("effect", Effect, "call_effect"),
            models.CheckConstraint(
                condition=Q(state__in=_values(CALL_FINAL), ended_at__isnull=False)
                | (~Q(state__in=_values(CALL_FINAL)) & Q(ended_at__isnull=True)),
                name="call_ended_when_final",
            ),
            models.CheckConstraint(
                condition=Q(due_at__isnull=False, state__in=[CallState.QUEUED, CallState.RETRYING])
                | (Q(due_at__isnull=True) & ~Q(state__in=[CallState.QUEUED, CallState.RETRYING])),
                name="call_due_when_claimable",
            ),
            models.CheckConstraint(
                condition=Q(session__isnull=True, incarnation=0) | Q(session__isnull=False, incarnation__gte=1),
                name="call_of_an_incarnation",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="call_due"),
            models.Index(fields=["job"], condition=Q(state__in=_values(MOVING | ASKING)), name="call_live"),
            models.Index(fields=["job", "activity"], name="call_in_job"),
            models.Index(fields=["session", "args_digest"], condition=Q(session__isnull=False), name="call_in_session"),
            models.Index(fields=["args_digest", "-id"], condition=Q(read_only=False), name="call_same_arguments"),
            models.Index(
                fields=["tenant", "-ended_at"], condition=Q(reason="kill_switch"), name="call_ended_by_switch"
            ),
        ]


class Attempt(TenantRow):
    """One try of a call on one node."""

    call = models.ForeignKey(Call, on_delete=models.PROTECT, related_name="attempts", db_constraint=False)
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    number = models.PositiveIntegerField()
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="attempts")
    state = word(default=AttemptState.OPEN)
    started_at = models.DateTimeField()
    limit_at = models.DateTimeField(help_text="when even a lost node's attempt has surely ended (MACHINES 3)")
    own_limit = models.FloatField(help_text="seconds after which the node stops it itself")
    stop_requested_at = models.DateTimeField(null=True)
    stop_reason = word(blank=True)
    ended_at = models.DateTimeField(null=True)
    reason = word(blank=True)
    wire: "models.JSONField[Any, Any]" = models.JSONField(null=True)
    end_known = models.BooleanField(default=True)
    retry_after = models.FloatField(null=True)
    progress = models.FloatField(null=True)
    total = models.FloatField(null=True)
    resume_token = models.CharField(max_length=256, blank=True, help_text="the last valid token it was given")
    resume_progress = models.FloatField(null=True, help_text="the progress that came with the token (RULES P3)")
    resume_total = models.FloatField(null=True)
    odd_token = models.BooleanField(default=False, help_text="a token came that is none")
    resume_scope = models.CharField(max_length=64, blank=True, help_text="the connection and function of its token")
    resumed_from = models.FloatField(null=True, help_text="the progress it went on from")
    resumed_of = models.FloatField(null=True)
    started_over_because = word(blank=True)
    late: "models.JSONField[Any, Any]" = models.JSONField(
        null=True, help_text="a reply after its end: evidence only (RULES L9)"
    )

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["call", "number"], name="attempt_number_once"),
            models.UniqueConstraint(fields=["call"], condition=Q(ended_at__isnull=True), name="attempt_one_open"),
            one_of("state", AttemptState, "attempt_state"),
            models.CheckConstraint(
                condition=(Q(state=AttemptState.OPEN) & Q(ended_at__isnull=True))
                | (~Q(state=AttemptState.OPEN) & Q(ended_at__isnull=False)),
                name="attempt_ended_when_closed",
            ),
            models.CheckConstraint(condition=Q(limit_at__gt=models.F("started_at")), name="attempt_limit_after_start"),
            models.CheckConstraint(
                condition=Q(resume_token="", resume_progress__isnull=True)
                | (~Q(resume_token="") & Q(resume_progress__isnull=False)),
                name="attempt_token_with_progress",
            ),
            models.CheckConstraint(
                condition=Q(resumed_from__isnull=True) | Q(started_over_because=""),
                name="attempt_resumed_or_started_over",
            ),
            models.CheckConstraint(
                condition=Q(stop_requested_at__isnull=True, stop_reason="")
                | (Q(stop_requested_at__isnull=False) & ~Q(stop_reason="")),
                name="attempt_stop_says_why",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["limit_at"], condition=Q(ended_at__isnull=True), name="attempt_open_limit"),
            models.Index(fields=["node"], condition=Q(ended_at__isnull=True), name="attempt_open_node"),
            models.Index(fields=["tenant", "started_at"], name="attempt_begun"),  # for the rates of a policy
        ]


class Hold(TenantRow):
    """A question to a person about one call. It closes exactly once (RULES A6)."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    call = models.ForeignKey(Call, on_delete=models.PROTECT, related_name="holds", db_constraint=False)
    kind = word()
    state = word(default=HoldState.OPEN)
    binding = models.CharField(max_length=64, blank=True, help_text="what an approval is bound to (RULES A4)")
    approves = models.CharField(max_length=64, blank=True, help_text="the binding a person approved, empty when none")
    rule_id = models.CharField(max_length=100, blank=True)
    rule_digest = models.CharField(max_length=64, blank=True)
    policy_number = models.PositiveIntegerField(default=0)
    why = models.TextField(help_text="one sentence for the person who decides")
    opened_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    answer = word(blank=True)
    answered_by = models.ForeignKey("tenants.User", null=True, on_delete=models.PROTECT, related_name="+")
    note = models.TextField(blank=True)
    edit = models.ForeignKey(
        Body,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        help_text="the arguments before and after, when the answer was to edit them (RULES A9)",
    )

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["call"], condition=Q(closed_at__isnull=True), name="hold_one_open"),
            one_of("state", HoldState, "hold_state"),
            one_of("kind", HoldKind, "hold_kind"),
            models.CheckConstraint(
                condition=(Q(state=HoldState.OPEN) & Q(closed_at__isnull=True))
                | (~Q(state=HoldState.OPEN) & Q(closed_at__isnull=False)),
                name="hold_closed_when_not_open",
            ),
            models.CheckConstraint(
                condition=(Q(state=HoldState.ANSWERED) & ~Q(answer="") & Q(answered_by__isnull=False))
                | (~Q(state=HoldState.ANSWERED) & Q(answer="", answered_by__isnull=True)),
                name="hold_answered_by_someone",
            ),
            models.CheckConstraint(
                condition=Q(expires_at__isnull=True) | Q(kind__in=[HoldKind.APPROVE, HoldKind.RETRY]),
                name="hold_questions_never_expire",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "opened_at", "id"], condition=Q(closed_at__isnull=True), name="hold_queue"),
            models.Index(fields=["expires_at"], condition=Q(closed_at__isnull=True), name="hold_expiry"),
            models.Index(fields=["tenant", "closed_at"], condition=Q(closed_at__isnull=False), name="hold_closed"),
        ]


class Event(TenantRow):
    """One thing that happened in a job. Append-only; folding a job's events gives its rows' states."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="events", db_constraint=False)
    seq = models.BigIntegerField()
    kind = word()
    call = models.UUIDField(null=True)
    data = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["job", "seq"], name="event_seq_once"),
        ]


END_STATES = {end: AttemptState(end.value) for end in End}
