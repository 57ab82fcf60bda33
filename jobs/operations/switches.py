"""Kill switches and pauses, and their effect on running work (RULES L7, L11)."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from itertools import takewhile
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from base import db
from catalog.models import KillSwitch
from catalog.queries import switch_targets
from catalog.rules.switching import Mode, Scope
from jobs import wake
from jobs.models import Call, Hold, Job
from jobs.operations import cancel, events, moves
from jobs.queries import locks, under_switch
from jobs.rules.covered import Covered
from jobs.rules.states import ASKING, JOB_FINAL, CallState, JobState
from jobs.rules.why import Why
from tenants.operations import audit
from tenants.rules.who import Actor

MOST_REASON: Final = 2_000  # characters


class BadSwitch(ValueError):
    """A switch that cannot be turned; the message says why."""


def never() -> bool:
    """There is no hurry: all of it is done now."""
    return False


def turn_on(
    *,
    tenant: UUID,
    scope: Scope,
    target: str,
    reason: str,
    by: Actor,
    mode: Mode = Mode.KILL,
    enough: Callable[[], bool] = never,
) -> UUID:
    """Stop everything under `scope` and `target`: no call starts after this commits, running ones are asked to stop.

    A tool's or function's switch ends its calls and lets jobs go on; an agent's or tenant's cancels the jobs. A pause
    only keeps new work from starting. What was there is counted in the same transaction and kept with the switch.
    What is left once that is `enough` the sweep does within a second. Raises `BadSwitch`.
    """
    if (scope is Scope.TENANT) != (target == ""):
        raise BadSwitch("a tenant's switch has no target, every other names one")
    if len(reason) > MOST_REASON:
        raise BadSwitch(f"the reason is {len(reason):,} characters long; up to {MOST_REASON:,} are kept")
    with db.write(tenant) as now:
        locks.gate_alone()
        if not switch_targets.exists(scope, target):
            raise BadSwitch(f"there is no {scope} {target!r}, so this would stop nothing; {_NAMED[scope]}")
        if KillSwitch.objects.filter(scope=scope, target=target, mode=mode, off_at__isnull=True).exists():
            raise BadSwitch("this switch is on already" if mode is Mode.KILL else "this is paused already")
        found = asdict(under_switch.count(scope, target))
        switch = KillSwitch.objects.create(
            tenant_id=tenant,
            scope=scope,
            target=target,
            mode=mode,
            reason=reason,
            found=found,
            on_at=now,
            on_by_id=by.user_id,
        )
        audit.record(by, f"{_VERBS[mode]}.on", f"{scope} {target}".strip(), after=found, note=reason)
        db.after_commit(lambda: wake.switched(tenant=tenant))
    apply(tenant=tenant, switch_id=switch.pk, enough=enough)
    return switch.pk


_VERBS: Final = {Mode.KILL: "switch", Mode.PAUSE: "pause"}
_NAMED: Final = {
    Scope.AGENT: "an agent is named as in the catalog",
    Scope.TOOL: "a tool is named by its id",
    Scope.FUNCTION: "a function is named <tool>.<function>",
}


def turn_off(*, tenant: UUID, switch_id: UUID, by: Actor, note: str = "") -> Covered | None:
    """Let new work start again, and what was only paused go on. What was stopped stays stopped.

    Returns what it covered as it was lifted; None when it was off before. Raises `KillSwitch.DoesNotExist`.
    """
    with db.write(tenant) as now:
        locks.gate_alone()
        switch = KillSwitch.objects.get(pk=switch_id)
        still_on = KillSwitch.objects.filter(pk=switch_id, off_at__isnull=True)
        if not still_on.update(off_at=now, off_by_id=by.user_id):
            return None
        goes_on = under_switch.count(Scope(switch.scope), switch.target)
        audit.record(by, f"{_VERBS[Mode(switch.mode)]}.off", f"{switch.scope} {switch.target}".strip(), note=note)
        db.after_commit(lambda: wake.switched(tenant=tenant))
        return goes_on


def apply(*, tenant: UUID, switch_id: UUID, enough: Callable[[], bool] = never) -> int:
    """End all work a kill switch covers, job by job, until that is `enough`; returns how many jobs were touched.

    The switch already keeps anything from starting, so this may be repeated: the sweep does, for a switch
    that was turned on by plain SQL or whose turning on was cut short. A pause ends nothing.
    """
    with db.read(tenant):
        switch = KillSwitch.objects.get(pk=switch_id)
        jobs = list(_touched(switch).values_list("pk", flat=True)) if switch.mode == Mode.KILL else []
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
    return under_switch.covered(live, switch)


def _end_calls(job: Job, switch: KillSwitch, now: datetime) -> None:
    covered = _covered(switch).filter(job_id=job.pk)
    cancel.stop_running(covered, why=Why.KILL_SWITCH, now=now)
    for call in covered.select_for_update(no_key=True).exclude(state=CallState.RUNNING).order_by("pk"):
        moves.call(call, CallState.CANCELED, reason=Why.KILL_SWITCH, now=now, detail=switch.reason)
        moves.withdraw(Hold.objects.filter(call_id=call.pk), now=now)
    events.judge_later(job.pk)
