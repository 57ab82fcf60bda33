"""Kill switches and their effect on running work (RULES L7)."""

from collections.abc import Callable
from datetime import datetime
from itertools import takewhile
from typing import Final, assert_never
from uuid import UUID

from django.db.models import QuerySet

from base import db
from catalog.models import Agent, Function, KillSwitch, Scope, Tool
from jobs.models import Call, Hold, Job
from jobs.operations import cancel, events, moves
from jobs.queries import locks
from jobs.rules.states import ASKING, JOB_FINAL, CallState, JobState
from jobs.rules.why import Why
from tenants.operations import audit
from tenants.rules.who import Actor


class BadSwitch(ValueError):
    """A switch that cannot be turned; the message says why."""


def turn_on(*, tenant: UUID, scope: Scope, target: str, reason: str, by: Actor) -> UUID:
    """Stop everything under `scope` and `target`: no call starts after this commits, running ones are asked to stop.

    A tool's or function's switch ends its calls and lets jobs go on; an agent's or tenant's cancels the jobs.
    """
    if (scope is Scope.TENANT) != (target == ""):
        raise BadSwitch("a tenant's switch has no target, every other names one")
    with db.write(tenant) as now:
        locks.gate_alone()
        if not _exists(scope, target):
            raise BadSwitch(f"there is no {scope} {target!r}, so this would stop nothing; {_NAMED[scope]}")
        if KillSwitch.objects.filter(scope=scope, target=target, off_at__isnull=True).exists():
            raise BadSwitch("this switch is on already")
        switch = KillSwitch.objects.create(
            tenant_id=tenant, scope=scope, target=target, reason=reason, on_at=now, on_by_id=by.user_id
        )
        audit.record(by, "switch.on", f"{scope} {target}".strip(), note=reason)
    apply(tenant=tenant, switch_id=switch.pk)
    return switch.pk


_NAMED: Final = {
    Scope.AGENT: "an agent is named as in the catalog",
    Scope.TOOL: "a tool is named by its id",
    Scope.FUNCTION: "a function is named <tool>.<function>",
}


def _exists(scope: Scope, target: str) -> bool:
    """Whether there is anything of this name: a switch that is on and stops nothing would be trusted."""
    match scope:
        case Scope.TENANT:
            return True
        case Scope.AGENT:
            return Agent.objects.filter(name=target).exists()
        case Scope.TOOL:
            return Tool.objects.filter(slug=target).exists()
        case Scope.FUNCTION:
            tool, _, function = target.partition(".")
            return Function.objects.filter(tool__slug=tool, name=function).exists()
        case never:
            assert_never(never)


def turn_off(*, tenant: UUID, switch_id: UUID, by: Actor) -> None:
    """Let new work start again. What was stopped stays stopped."""
    with db.write(tenant) as now:
        locks.gate_alone()
        switch = KillSwitch.objects.get(pk=switch_id)
        if KillSwitch.objects.filter(pk=switch_id, off_at__isnull=True).update(off_at=now, off_by_id=by.user_id):
            audit.record(by, "switch.off", f"{switch.scope} {switch.target}".strip())


def apply(*, tenant: UUID, switch_id: UUID, enough: Callable[[], bool] = lambda: False) -> int:
    """End all work a switch covers, job by job, until that is `enough`; returns how many jobs were touched.

    The switch already keeps anything from starting, so this may be repeated: the sweep does, for a switch
    that was turned on by plain SQL or whose turning on was cut short.
    """
    with db.read(tenant):
        switch = KillSwitch.objects.get(pk=switch_id)
        jobs = list(_touched(switch).values_list("pk", flat=True))
    return sum(_apply_to(job_id, switch) for job_id in takewhile(lambda _: not enough(), jobs))


def _apply_to(job_id: UUID, switch: KillSwitch) -> bool:
    """False when the job is over, or the switch was turned off meanwhile."""
    with db.write(switch.tenant_id) as now:
        locks.gate_shared()
        job = locks.job(job_id)
        still_on = KillSwitch.objects.filter(pk=switch.pk, off_at__isnull=True).exists()
        if job is None or job.state in JOB_FINAL or not still_on:
            return False
        if switch.scope in (Scope.TENANT, Scope.AGENT):
            cancel.end(job, ends_as=JobState.CANCELED, reason=Why.KILL_SWITCH, detail=switch.reason, now=now)
        else:
            _end_calls(job, switch, now)
        return True


def _touched(switch: KillSwitch) -> QuerySet[Job]:
    live = Job.objects.exclude(state__in=[*JOB_FINAL, JobState.CANCELLING])
    match switch.scope:
        case Scope.TENANT:
            return live
        case Scope.AGENT:
            return live.filter(agent_name=switch.target)
        case _:
            return live.filter(pk__in=_covered(switch).values("job_id"))


def _covered(switch: KillSwitch) -> QuerySet[Call]:
    """The calls a tool's or function's switch stops: waiting, running, or asking whether they may run."""
    live = Call.objects.filter(state__in=[CallState.QUEUED, CallState.RUNNING, CallState.RETRYING, *ASKING])
    live = live.exclude(state=CallState.UNKNOWN)  # whether a write happened is still worth knowing
    if switch.scope == Scope.TOOL:
        return live.filter(tool_slug=switch.target)
    tool, _, function = switch.target.partition(".")
    return live.filter(tool_slug=tool, function_name=function)


def _end_calls(job: Job, switch: KillSwitch, now: datetime) -> None:
    covered = _covered(switch).filter(job_id=job.pk)
    cancel.stop_running(covered, why=Why.KILL_SWITCH, now=now)
    for call in covered.select_for_update(no_key=True).exclude(state=CallState.RUNNING).order_by("pk"):
        moves.call(call, CallState.CANCELED, reason=Why.KILL_SWITCH, now=now, detail=switch.reason)
        moves.withdraw(Hold.objects.filter(call_id=call.pk), now=now)
    events.judge_later(job.pk)
