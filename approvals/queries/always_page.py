"""What a rule that always allows a call would be and do, before it is saved (RULES A11)."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from approvals.queries.deciding_rules import deciding_rules, question_of
from approvals.queries.policy_simulation import Asked, simulate
from approvals.rules import always
from approvals.rules.always import About, Chosen, Pin
from approvals.rules.deciding import Question
from base import db, ids
from base.canonical import digest_of_any
from catalog.models import PolicyVersion
from catalog.rules.kinds import Kind
from catalog.rules.policy import Allow, Facts, fit_of
from catalog.rules.policy_rules import Rule, oddities, read_rules
from catalog.rules.policy_words import conditions
from jobs.models import Call, Hold
from jobs.queries.trace import name_of
from jobs.rules.states import HoldKind

LOOKED_AT: Final = 50  # of the last calls of the function


@dataclass(frozen=True, slots=True)
class AlwaysPage:
    """A waiting call, and the rule that is proposed. `why_not` says why it cannot be saved, or would do nothing.

    `digest` is of the rule and of the version it is added to: exactly what the person is shown.
    """

    shown_id: str
    open: bool
    name: str
    agent: str
    question: Question
    pins: tuple[Pin, ...]
    chosen: Chosen
    rule: dict[str, Any]
    words: tuple[str, ...]
    until: datetime
    fitted: int
    looked_at: int
    seen: int
    rules: list[Any]
    digest: str
    why_not: str
    now: datetime


def always_page(tenant: UUID, hold_id: UUID, chosen: Chosen, *, until: datetime | None = None) -> AlwaysPage | None:
    """The proposal for a hold of this tenant; None when there is no such question whether a call may run."""
    with db.read(tenant) as now:
        found = Hold.objects.select_related("call__arguments_body", "call", "job")
        hold = found.filter(pk=hold_id, kind=HoldKind.APPROVE).first()
        if hold is None:
            return None
        newest = PolicyVersion.objects.order_by("-number").first()
        rules = newest.rules if newest is not None and isinstance(newest.rules, list) else []
        about = _about(hold, rules)
        ends = until or always.end_of(chosen, now)
        taken = [str(rule.get("id")) for rule in rules if isinstance(rule, dict)]
        rule = always.rule_of(about, chosen, until=ends, taken=taken)
        (read,) = read_rules([rule])
        fitted, looked_at = _fitted(hold.call, read, now)
        seen = newest.number if newest else 0
        deciding = deciding_rules(tenant)
        question, needed = question_of(hold, deciding), deciding.needed(hold.call.kind)
        starter, tainted = hold.job.starter, hold.job.tainted_at is not None
    with_it = [*rules, rule]
    why_not = always.why_not(about) or _several(needed, about.kind) or "; ".join(oddities(with_it))
    return AlwaysPage(
        shown_id=ids.show(ids.HOLD, hold.pk),
        open=hold.closed_at is None,
        name=name_of(hold.call),
        agent=about.agent,
        question=question,
        pins=always.pins(about.arguments),
        chosen=chosen,
        rule=rule,
        words=conditions(read),
        until=ends,
        fitted=fitted,
        looked_at=looked_at,
        seen=seen,
        rules=with_it,
        digest=digest_of_any([seen, rule]),
        why_not=why_not or _still_asks(tenant, about, starter, tainted, with_it),
        now=now,
    )


def _several(needed: int, kind: str) -> str:
    return f"{needed} people must approve a call that is {kind} here, so no one person allows it for good." * (
        needed > 1
    )


def _about(hold: Hold, rules: list[Any]) -> About:
    call = hold.call
    asking = next(
        (
            raw
            for raw, read in zip(rules, read_rules(rules), strict=False)
            if isinstance(raw, dict) and (read.id, read.digest) == (hold.rule_id, hold.rule_digest)
        ),
        None,
    )
    arguments = call.arguments_body.data if call.arguments_body else call.arguments
    kind = call.kind or Kind.UNDECLARED.value
    return About(kind, call.tool_slug, call.function_name, hold.job.agent_name, arguments, asking)


def _still_asks(tenant: UUID, about: About, starter: str, tainted: bool, rules: list[Any]) -> str:
    """Why this very call would still not run by itself with the rule; empty when it would."""
    asked = Asked(about.tool, about.function, about.agent, starter, tainted, about.arguments)
    found = simulate(tenant, asked, rules)
    if found is None:
        return "The catalog lists this function no more."
    verdict = found.explained.verdict
    if isinstance(verdict, Allow):
        return ""
    return f"It would change nothing for this call: rule “{verdict.rule.title}” is not wider, and still decides."


def _fitted(call: Call, rule: Rule, now: datetime) -> tuple[int, int]:
    """(how many of the last calls of the function the rule fits, how many were looked at)."""
    same = Call.objects.filter(tool_slug=call.tool_slug, function_name=call.function_name)
    last = list(same.select_related("job", "arguments_body").order_by("-pk")[:LOOKED_AT])
    fits = 0
    for one in last:
        arguments = one.arguments_body.data if one.arguments_body else one.arguments
        kind = Kind(one.kind) if one.kind else Kind.UNDECLARED
        facts = Facts(
            kind=kind,
            tool=one.tool_slug,
            function=one.function_name,
            agent=one.job.agent_name,
            starter=one.job.starter,
            open_world=True,
            at=now,
            tainted=one.job.tainted_at is not None,
            arguments=arguments if isinstance(arguments, dict) else {},
        )
        fits += fit_of(replace(rule, open_world=None), facts) is not None  # what it said then is not kept
    return fits, len(last)
