"""The runs of a job that continued as new: how long the present one is, and what it was begun with (RULES G3).

What the studio knows of the runs before is told from its own rows, which no summary of a model can lose: every call
that changed something or may have, what a person did not let run, and the job's taint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from django.db.models import Case, Count, Q, QuerySet, SmallIntegerField, When

from base import ids
from jobs.models import Call, Event, Job, Session, Turn
from jobs.queries import history, taints
from jobs.rules import texts
from jobs.rules.runs import tokens_of_texts
from jobs.rules.states import CallState, Effect, TurnState
from jobs.rules.turns import PastTurn, tokens_of
from jobs.rules.why import Why

MOST_LINES: Final = 40  # calls of earlier runs that a run's model is told of one by one
MOST_OF_A_PROGRAM: Final = 500  # that a harness's program is told of
MATTERS: Final = Case(  # which calls are told of first, where not all are
    When(effect=Effect.MAYBE, then=0),
    When(state__in=[CallState.HAPPENED, CallState.REFUSED], then=1),
    When(~Q(state=CallState.SUCCEEDED), then=2),
    default=3,
    output_field=SmallIntegerField(),
)
TOLD_LONGEST: Final = 2_000  # characters of what came of each


def conversation(job: Job, past: Sequence[PastTurn]) -> int:
    """About how many tokens one more request of this run would send.

    What the newest answer's request had is counted by its provider; what came after it is estimated.
    """
    if not past:
        return 0
    newest = _turns(job).filter(state=TurnState.ANSWERED, sums_up=False).order_by("-number")
    counted = tokens_of_request(newest.values_list("usage", flat=True).first() or {})
    news = [call.text for call in past[-1].calls]
    if counted:
        return counted + tokens_of_texts(news)
    said = chain.from_iterable([turn.say, *(call.text for call in turn.calls)] for turn in past)
    return tokens_of_texts(said)


def base_of(job: Job) -> int:
    """The tokens of this run's first request, as its provider counted them: what each run of its kind begins with."""
    first = _turns(job).filter(state=TurnState.ANSWERED, sums_up=False).order_by("number")
    return tokens_of({"input_tokens": (first.values_list("usage", flat=True).first() or {}).get("input_tokens")})


def tokens_of_request(usage: dict[str, Any]) -> int:
    """The tokens of one request and its answer, without those that were asked in vain."""
    return tokens_of({name: usage.get(name) for name in ("input_tokens", "output_tokens")})


def just_summed_up(job: Job) -> bool:
    """Whether the newest thing asked of this run's model was a summary, which came to nothing."""
    return _turns(job).order_by("-number").values_list("sums_up", flat=True).first() is True


def summed_up_in_vain(job: Job) -> int:
    """How many summaries of this run were of no use."""
    return _turns(job).filter(sums_up=True, state=TurnState.FAILED).count()


def _turns(job: Job) -> QuerySet[Turn]:
    return Turn.objects.filter(job=job, run_number=job.run_number)


def begun_with(job: Job, run: int) -> tuple[str, ...]:
    """What the model of a job's `run` reads after the input: nothing, where no summary of the run before was made."""
    summary = summary_before(job, run)
    if not summary:
        return ()
    calls = telling(job, run)
    shown = list(calls.select_related("arguments_body").order_by(MATTERS, "-run_number", "-activity")[:MOST_LINES])
    rest = calls.exclude(pk__in=[call.pk for call in shown]).order_by()
    others = dict(rest.values_list("model_name").annotate(Count("pk")))
    unclear = rest.filter(effect=Effect.MAYBE).count()
    lines = [_line(call) for call in sorted(shown, key=lambda call: (call.run_number, call.activity))]
    return texts.begun_with(summary, lines, others, _taint_before(job, run), unclear=unclear)


def summary_before(job: Job, run: int) -> str:
    """The summary that the run before this one ended with; empty when it has none."""
    if run < 1:
        return ""
    found = Turn.objects.filter(job=job, run_number=run - 1, sums_up=True, state=TurnState.ANSWERED)
    return found.order_by("-number").values_list("say", flat=True).first() or ""


def telling(job: Job, run: int) -> QuerySet[Call]:
    """The calls of the runs before that have to be told, the newest first."""
    changed = ~Q(effect=Effect.NONE) | Q(state=CallState.HAPPENED)
    withheld = Q(state=CallState.REFUSED, reason__in=[Why.DENIED, Why.EXPIRED])
    found = Call.objects.filter(changed | withheld, job=job, run_number__lt=run, read_only=False)
    return found.order_by("-run_number", "-activity")


def _line(call: Call) -> str:
    arguments = call.arguments_body.data if call.arguments_body else call.arguments
    return texts.recorded(
        call.model_name,
        arguments,
        place=(call.run_number + 1, call.activity),
        text=history.came_of(call, whole=False),
        answered=call.state in (CallState.SUCCEEDED, CallState.ERRORED),
        edited=call.edited_from_id is not None,
    )


def _taint_before(job: Job, run: int) -> str:
    """The manual that tainted the job before this run began; empty when none did."""
    if job.tainted_at is None:
        return ""
    by = Event.objects.filter(job=job, kind="job.tainted").values_list("call", flat=True).first()
    before = Call.objects.filter(pk=by, run_number__lt=run).exists() if by else True
    found = taints.taint_of(job)
    return found.skill if before and found else ""


@dataclass(frozen=True, slots=True)
class Begun:
    """What a harness's program is told of the runs before its own.

    `note` is the one that the program before it left, `calls` what came of those which changed something or may have,
    first those nobody is sure of and then the newest of them, and `left_out` how many more there were.
    """

    run: int
    note: str
    calls: Sequence[dict[str, Any]]
    left_out: int


def begun_of_program(job: Job, run: int) -> Begun | None:
    """What the program of a harness job's `run` is told; None in its first."""
    if run == 0:
        return None
    before = Session.objects.filter(job=job, run_number=run - 1).order_by("-number").first()
    note = before.continues.get("note", "") if before is not None and before.continues else ""
    found = list(telling(job, run).order_by(MATTERS, "-run_number", "-activity")[: MOST_OF_A_PROGRAM + 1])
    left_out = 0
    if len(found) > MOST_OF_A_PROGRAM:
        left_out = telling(job, run).count() - MOST_OF_A_PROGRAM
    shown = sorted(found[:MOST_OF_A_PROGRAM], key=lambda call: (call.run_number, call.activity))
    calls = [_told(call) for call in shown]
    return Begun(run, note, calls, left_out)


def _told(call: Call) -> dict[str, Any]:
    return {
        "call": ids.show(ids.CALL, call.pk),
        "run": call.run_number,
        "function": call.model_name,
        "arguments": call.arguments,
        "state": call.state,
        "effect": call.effect,
        "text": _cut(history.came_of(call, whole=False)),
    }


def _cut(text: str) -> str:
    return text if len(text) <= TOLD_LONGEST else f"{text[:TOLD_LONGEST]}…"


def has_called(job: Job) -> bool:
    """Whether a job's present run has made a call."""
    return Call.objects.filter(job=job, run_number=job.run_number).exists()
