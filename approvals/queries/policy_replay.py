"""The calls of the last days, judged by a policy that is tried: nothing runs and nothing is written (RULES A2)."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from base import db, ids
from catalog.queries import policies
from catalog.rules.kinds import Kind
from catalog.rules.policy import Allow, Ask, Facts, Policy, about, counts_needed, judge, waits
from catalog.rules.policy_rules import Effect, Rule
from catalog.rules.rates import SECONDS_MOST, Of, Rate
from jobs.models import Attempt, Body, Call, Hold
from jobs.rules.states import CallState, HoldKind
from jobs.rules.why import Why

DAYS: Final = 7
CALLS_MOST: Final = 20_000  # the newest of the span are tried
SHOWN: Final = 100  # calls listed of each sort
_SKEW: Final = timedelta(days=1)  # how far an id's time may be from the database's
_FIELDS: Final = (
    *("id", "job_id", "activity", "tool_slug", "function_name", "kind", "args_digest", "arguments_body_id"),
    *("state", "reason", "created_at", "job__agent_name", "job__starter", "job__tainted_at", "function__open_world"),
)


@dataclass(frozen=True, slots=True)
class Tried:
    """One past call: what the tried policy says of it, and what became of it then."""

    shown_call: str
    name: str
    agent: str
    state: str
    says: Effect
    then: Effect
    rule: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Listed:
    """Calls of one sort: how many there were, and the newest of them."""

    count: int
    calls: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """What the tried policy says of the calls of the span. `cut` when there were more than are tried.

    `asked` and `refused` are those it would have held and refused, `otherwise` those that it treats otherwise than
    they were treated. `by_rule` is (id, title, calls) of what each rule decided, `silent` the rules that decided none.
    """

    calls: int
    cut: bool
    asked: Listed
    refused: Listed
    waited: Listed
    otherwise: Listed
    then: Mapping[Effect, int]
    by_rule: tuple[tuple[str, str, int], ...]
    silent: tuple[Rule, ...]
    since: datetime
    now: datetime

    @property
    def held_then(self) -> int:
        """How many waited for a person as it went."""
        return self.then.get(Effect.ASK, 0)

    @property
    def refused_then(self) -> int:
        """How many the policy of their time refused."""
        return self.then.get(Effect.REFUSE, 0)


def replay(tenant: UUID, rules: Any = None, *, days: int = DAYS) -> Replay:
    """Judge every call of the last days by the policy in force, or by the `rules` of a draft.

    A call is judged once, as it first began or else was asked for: by the kind it had, its arguments, and the attempts
    and repeats until then.
    """
    with db.read(tenant) as now:
        policy = policies.in_force()[0] if rules is None else Policy.read(rules)
        since = now - timedelta(days=days)
        rows = _calls_since(since, arguments=any(rule.arguments for rule in policy.rules))
        past = _Past(since, policy, rows)
    tried = [past.tried(row, policy, now) for row in rows]  # no transaction waits while thousands are judged
    decided = Counter((one.rule_id, one.tried.rule) for one in tried)
    named = {name for name, _ in decided}
    calls = [one.tried for one in reversed(tried)]
    return Replay(
        calls=len(calls),
        cut=len(rows) >= CALLS_MOST,
        asked=_listed(calls, lambda one: one.says is Effect.ASK),
        refused=_listed(calls, lambda one: one.says is Effect.REFUSE),
        waited=_listed(calls, lambda one: one.says is Effect.WAIT),
        otherwise=_listed(calls, lambda one: one.says is not one.then and one.says is not Effect.WAIT),
        then=Counter(one.then for one in calls),
        by_rule=tuple((name, title, count) for (name, title), count in decided.most_common()),
        silent=tuple(rule for rule in policy.rules if rule.id not in named),
        since=since,
        now=now,
    )


def _listed(calls: Sequence[Tried], fits: Any) -> Listed:
    found = [one for one in calls if fits(one)]
    return Listed(len(found), tuple(found[:SHOWN]))


def _calls_since(since: datetime, *, arguments: bool) -> list[dict[str, Any]]:
    """The newest calls of the span that a policy was asked about, the oldest first."""
    judged = Call.objects.filter(pk__gte=ids.first_at(since - _SKEW), created_at__gte=since).exclude(kind="")
    fields = (*_FIELDS, "arguments") if arguments else _FIELDS
    rows = list(judged.exclude(reason=Why.BAD_ARGUMENTS).order_by("-pk").values(*fields)[:CALLS_MOST])
    return rows[::-1]


@dataclass(frozen=True, slots=True)
class _Judged:
    tried: Tried
    rule_id: str


class _Past:
    """What had been when each call was made, read once for all of them. Demands an open read."""

    def __init__(self, since: datetime, policy: Policy, rows: Sequence[Mapping[str, Any]]) -> None:
        self._held = set(_held_since(since))
        self._about: dict[tuple[Any, ...], Policy] = {}
        self._asked: Counter[tuple[Any, ...]] = Counter()
        self._bodies: dict[UUID, Any] = {}
        self._began: dict[UUID, datetime] = {}
        self._starts: dict[str, list[datetime]] = defaultdict(list)  # by tool; of the whole tenant under ""
        if any(rule.rate is not None or rule.tainted is not None for rule in policy.rules):
            self._read_attempts(since)
        if any(rule.arguments for rule in policy.rules):
            large = {row["arguments_body_id"] for row in rows} - {None}
            self._bodies = dict(Body.objects.filter(pk__in=large).values_list("pk", "data"))

    def tried(self, row: Mapping[str, Any], policy: Policy, now: datetime) -> _Judged:
        """One call, judged; calls of a job come in their order."""
        same = (row["job_id"], row["tool_slug"], row["function_name"], row["args_digest"])
        self._asked[same] += 1
        facts = Facts(
            kind=Kind(row["kind"]),
            tool=row["tool_slug"],
            function=row["function_name"],
            agent=row["job__agent_name"],
            starter=row["job__starter"],
            open_world=row["function__open_world"] is not False,
            at=now,
            tainted=row["job__tainted_at"] is not None and row["job__tainted_at"] <= self._judged_at(row),
            arguments=self._arguments(row),
            repeats=self._asked[same],
        )
        own = self._own(policy, facts)
        needed = counts_needed(own, facts).rates
        facts = replace(facts, full=self._full(needed, row)) if needed else facts
        verdict, wait = judge(own, facts), waits(own, facts)
        says = Effect.ALLOW if isinstance(verdict, Allow) else Effect.ASK if isinstance(verdict, Ask) else Effect.REFUSE
        by = verdict.rule
        if wait is not None and says is Effect.ALLOW:
            says, by = Effect.WAIT, wait.rule
        tried = Tried(
            shown_call=ids.show(ids.CALL, row["id"]),
            name=f"{row['tool_slug']}.{row['function_name']}",
            agent=row["job__agent_name"],
            state=row["state"],
            says=says,
            then=self._then(row),
            rule=by.title,
            why=by.why,
            at=row["created_at"],
        )
        return _Judged(tried, by.id)

    def _own(self, policy: Policy, facts: Facts) -> Policy:
        """The rules that could fit such a call, looked up once for all calls like it."""
        like = (facts.kind, facts.tool, facts.function, facts.agent, facts.starter, facts.open_world, facts.tainted)
        if like not in self._about:
            self._about[like] = about(policy, facts)
        return self._about[like]

    def _then(self, row: Mapping[str, Any]) -> Effect:
        if row["id"] in self._held:
            return Effect.ASK
        refused = row["state"] == CallState.REFUSED and row["reason"] == Why.POLICY_REFUSES
        return Effect.REFUSE if refused else Effect.ALLOW

    def _arguments(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        found = row.get("arguments") or self._bodies.get(row["arguments_body_id"])
        return found if isinstance(found, Mapping) else {}

    def _full(self, rates: frozenset[Rate], row: Mapping[str, Any]) -> Mapping[Rate, datetime]:
        at = self._judged_at(row)
        found = {}
        for rate in rates:
            starts = self._starts["" if rate.of is Of.TENANT else row["tool_slug"]]
            before = bisect_left(starts, at)
            if before >= rate.calls:
                opens = starts[before - rate.calls] + timedelta(seconds=rate.seconds)
                if opens > at:
                    found[rate] = opens
        return found

    def _judged_at(self, row: Mapping[str, Any]) -> datetime:
        at: datetime = self._began.get(row["id"], row["created_at"])
        return at

    def _read_attempts(self, since: datetime) -> None:
        began = Attempt.objects.filter(started_at__gte=since - timedelta(seconds=SECONDS_MOST)).order_by("started_at")
        for call, tool, at in began.values_list("call_id", "call__tool_slug", "started_at").iterator():
            self._began.setdefault(call, at)
            self._starts[tool].append(at)
            self._starts[""].append(at)


def _held_since(since: datetime) -> list[UUID]:
    asked = Hold.objects.filter(opened_at__gte=since, kind__in=[HoldKind.APPROVE, HoldKind.RETRY])
    return list(asked.values_list("call_id", flat=True))
