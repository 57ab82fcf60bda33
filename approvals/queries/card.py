"""One question as a card: exactly what will run, why it waits, what each answer will do (RULES A3, U7)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from approvals.rules.answers import AnswerOption
from approvals.rules.deciding import shown_digest
from base import db, figures, ids
from catalog.models import Tool
from jobs.models import Attempt, Call, Hold
from jobs.queries.call_page import AttemptRow, Value, attempt_row, value_of
from jobs.queries.story import answered
from jobs.queries.trace import name_of
from jobs.rules.limits import KEY_LIFE
from jobs.rules.states import CallState, Effect, HoldKind, HoldState
from tenants.queries import settings

STOP_RUNNING: Final = (CallState.RUNNING, CallState.CANCELLING)


@dataclass(frozen=True, slots=True)
class Card:
    """One question, open or closed. `shown` is the digest of what the person is shown, kept with the decision."""

    hold_id: UUID
    shown_id: str
    kind: HoldKind
    state: HoldState
    open: bool
    why: str
    rule: str
    policy: int
    opened_at: datetime
    closed_at: datetime | None
    expires_at: datetime | None
    answer: str
    closed_says: str
    answered_by_id: int | None
    note: str
    name: str
    model_name: str
    function_kind: str
    honours_key: bool
    read_only: bool
    key: str
    key_since: datetime
    may_write_twice: str
    check_text: str
    arguments: Value
    call_id: str
    call_state: CallState
    shown_job: str
    job_title: str
    job_state: str
    agent: str
    starter: str
    started_by: str
    started_by_id: int | None
    attempts: tuple[AttemptRow, ...]
    alike: str
    options: tuple[AnswerOption, ...]
    shown: str
    no_self_approval: bool
    now: datetime


def card(tenant: UUID, hold_id: UUID, *, whole: bool = False) -> Card | None:
    """The card of a hold of this tenant; None when there is none."""
    with db.read(tenant) as now:
        hold = (
            Hold.objects.select_related("call__function", "job__started_by", "answered_by").filter(pk=hold_id).first()
        )
        if hold is None:
            return None
        call, job = hold.call, hold.job
        attempts = list(Attempt.objects.filter(call=call).select_related("node").order_by("number"))
        arguments = value_of(call.arguments, call.arguments_body_id, whole=whole)
        running = Call.objects.filter(job=job, state__in=STOP_RUNNING).count()
        first = attempts[0].started_at if attempts else call.created_at
        return Card(
            hold_id=hold.pk,
            shown_id=ids.show(ids.HOLD, hold.pk),
            kind=HoldKind(hold.kind),
            state=HoldState(hold.state),
            open=hold.closed_at is None,
            why=hold.why,
            rule=hold.rule_id,
            policy=hold.policy_number,
            opened_at=hold.opened_at,
            closed_at=hold.closed_at,
            expires_at=hold.expires_at,
            answer=hold.answer,
            closed_says=answered(hold),
            answered_by_id=hold.answered_by_id,
            note=hold.note,
            name=name_of(call),
            model_name=call.model_name,
            function_kind=call.kind,
            honours_key=call.honours_key,
            read_only=call.read_only,
            key=call.key,
            key_since=first,
            may_write_twice=_twice(call, first, now),
            check_text=_check_text(call),
            arguments=arguments,
            call_id=ids.show(ids.CALL, call.pk),
            call_state=CallState(call.state),
            shown_job=ids.show(ids.JOB, job.pk),
            job_title=job.title,
            job_state=job.state,
            agent=job.agent_name,
            starter=job.starter,
            started_by=job.started_by.get_username() if job.started_by else "",
            started_by_id=job.started_by_id,
            attempts=tuple(attempt_row(one) for one in attempts),
            alike=_alike(call),
            options=_options(hold, running),
            shown=shown_digest(hold=hold.pk, kind=hold.kind, binding=hold.binding, arguments=call.args_digest),
            no_self_approval=settings.no_self_approval(tenant),
            now=now,
        )


def _twice(call: Call, first: datetime, now: datetime) -> str:
    """Why running it again may write twice; nothing when its key surely prevents that."""
    if call.read_only:
        return ""
    if not call.honours_key:
        return "This function does not honour the key: running it again may write twice."
    if now - first > KEY_LIFE:
        return f"The key is {figures.duration(now - first)} old, older than 24 h: running it again may write twice."
    return ""


def _check_text(call: Call) -> str:
    """The plugin's own words on how to find out whether it happened."""
    tool = Tool.objects.filter(pk=call.function.tool_id).first() if call.function else None
    text = tool.check_text.get(call.function_name, "") if tool else ""
    return text if isinstance(text, str) else ""


def _alike(call: Call) -> str:
    """How the last calls of the same function went."""
    before = Call.objects.filter(tool_slug=call.tool_slug, function_name=call.function_name).exclude(pk=call.pk)
    states = list(before.order_by("-pk").values_list("state", flat=True)[:100])
    if not states:
        return "the first call of this function"
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    return f"last {len(states)}: " + ", ".join(f"{count} {state}" for state, count in counts.items())


def _denying(hold: Hold) -> str:
    if hold.call.effect != Effect.MAYBE:
        return "It does not run. The job goes on; the agent reads your reason."
    then = "you are asked whether it did" if hold.job.on_unknown == "ask" else "its job fails, as its agent says"
    return f"It does not run again. An earlier attempt may have acted: {then}."


def _options(hold: Hold, running: int) -> tuple[AnswerOption, ...]:
    stopped = (
        f"; {figures.plural(running, 'running call')} {'is' if running == 1 else 'are'} stopped first"
        if running
        else ""
    )
    stop = AnswerOption(
        "stop", "Stop the job", "s", f"No further call of this job starts{stopped}. It ends CANCELED.", "danger"
    )
    match HoldKind(hold.kind):
        case HoldKind.APPROVE | HoldKind.RETRY:
            again = " again" if hold.kind == HoldKind.RETRY else ""
            return (
                AnswerOption(
                    "approve",
                    "Approve",
                    "a",
                    f"Exactly these arguments run{again}, once, after policy is judged again.",
                    "main",
                ),
                AnswerOption(
                    "deny",
                    "Deny",
                    "d",
                    _denying(hold),
                    "danger",
                    "Reason, for the agent",
                    True,
                ),
                stop,
            )
        case HoldKind.UNKNOWN:
            return (
                AnswerOption(
                    "happened",
                    "It happened",
                    "h",
                    "The job goes on; the agent reads that a person checked and says it happened.",
                    "",
                    "Its result, if you know it",
                ),
                AnswerOption(
                    "again", "Run it again", "r", "One more attempt under the same key, after policy is judged again."
                ),
                stop,
            )
        case HoldKind.SESSION:
            return (stop,)
