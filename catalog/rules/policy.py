"""May this call run, must a person be asked, or is it refused? One pure answer for every path that starts work.

How the rules that fit a call are weighed (RULES A2, A11; written for people in docs/policy.md):

1. A rule that says *refuse* wins over every other.
2. A rule that cannot be read asks, and no *allow* beats it.
3. A narrower rule wins over a wider one. Narrower: each condition of the wider one is there too, the same or tighter.
4. Where neither is narrower, *ask* wins over *allow*.
5. Where rules are still equal, the one written first is named.
6. Where no rule fits, the defaults of the studio: read and write run, destructive and undeclared ask.

A condition on an argument that the call does not settle holds for a rule that asks, makes a rule that refuses ask,
and does not hold for a rule that allows.

A rule that *waits* says nothing of whether a call may run, only when: `waits` is asked once `judge` has let it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from catalog.rules.conditions import Patterns
from catalog.rules.kinds import Kind
from catalog.rules.policy_rules import Effect, Rule, read_rules
from catalog.rules.rates import Of, Rate


@dataclass(frozen=True, slots=True)
class Facts:
    """What a policy may look at. `arguments` are the canonical ones that will be sent; `at` is the database's time.

    `full` are the rates that are full now, each with the moment when it has room again. `repeats` is how often the job
    asked for this same call, this one counted. Both are looked up only where `counts_needed` says so.
    """

    kind: Kind
    tool: str
    function: str
    agent: str
    starter: str
    open_world: bool
    at: datetime
    tainted: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    full: Mapping[Rate, datetime] = field(default_factory=dict)
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Matched:
    """The rule a verdict follows from. An approval is bound to `id` and `digest` (RULES A4); `title` is for people.

    `why` adds, in a sentence, what made a rule ask that does not say so itself; else it is empty.
    """

    id: str
    digest: str
    title: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""

    rule: Matched


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must approve the call first."""

    rule: Matched


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call must not run."""

    rule: Matched


type Verdict = Allow | Ask | Refuse


@dataclass(frozen=True, slots=True)
class Wait:
    """A call that may run begins no attempt before `until`: a rate is full."""

    rule: Matched
    until: datetime


@dataclass(frozen=True, slots=True)
class Needed:
    """What has to be counted before a call can be judged."""

    rates: frozenset[Rate] = frozenset()
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """A tenant's rules, in their order. Read from JSON with `Policy.read`."""

    rules: tuple[Rule, ...] = ()

    @staticmethod
    def read(raw: Any) -> "Policy":
        """The policy in a version's `rules`. Never raises: what cannot be read asks (RULES A2)."""
        return Policy(read_rules(raw))


DEFAULTS: Final[tuple[Rule, ...]] = read_rules(
    [
        {"id": "default-read", "title": "reads run", "effect": "allow", "kind": "read"},
        {"id": "default-write", "title": "writes that only add run", "effect": "allow", "kind": "write"},
        {"id": "default-destructive", "title": "destructive asks", "effect": "ask", "kind": "destructive"},
        {"id": "default-undeclared", "title": "undeclared asks", "effect": "ask", "kind": "undeclared"},
    ]
)


def judge(policy: Policy, facts: Facts) -> Verdict:
    """What the policy says of one call, and by which rule."""
    fitting = deciding(policy, facts)
    refusing = [fit for fit in fitting if fit.effect is Effect.REFUSE]
    if refusing:
        return Refuse(refusing[0].matched())
    cautious = [fit for fit in fitting if fit.rule.odd]
    if cautious:
        return Ask(cautious[0].matched())
    narrowest = fitting
    if len(fitting) > 1:
        narrowest = [fit for fit in fitting if not any(narrower(other.rule, fit.rule) for other in fitting)]
    asking = [fit for fit in narrowest if fit.effect is Effect.ASK]
    return Ask(asking[0].matched()) if asking else Allow(narrowest[0].matched())


def waits(policy: Policy, facts: Facts) -> Wait | None:
    """What keeps a call that may run from beginning now: of the rates that are full, the one that opens last."""
    fits = [fit for rule in policy.rules if rule.effect is Effect.WAIT and (fit := fit_of(rule, facts)) is not None]
    found = [(facts.full[fit.rule.rate], fit) for fit in fits if fit.rule.rate is not None and not fit.rule.odd]
    if not found:
        return None
    until, fit = max(found, key=lambda each: each[0])
    return Wait(fit.matched(), until)


def counts_needed(policy: Policy, facts: Facts) -> Needed:
    """The counts that could change what the policy says of this call; without such rules there are none."""
    counting = [
        rule
        for rule in policy.rules
        if (rule.rate is not None or rule.repeated is not None) and _fit_but_for_counts(rule, facts) is not None
    ]
    rates = frozenset(rule.rate for rule in counting if rule.rate is not None)
    return Needed(rates, any(rule.repeated is not None for rule in counting))


def about(policy: Policy, facts: Facts) -> Policy:
    """The rules that could fit a call of this function by this agent, whatever its arguments and counts are."""
    return Policy(tuple(rule for rule in policy.rules if _named(rule, facts)))


def narrower(one: Rule, other: Rule) -> bool:
    """Whether `one` fits only calls that `other` fits too, and surely not the other way round."""
    return _within(one, other) and not _within(other, one)


@dataclass(frozen=True, slots=True)
class Fit:
    """A rule that fits the call, and what it says of it."""

    rule: Rule
    effect: Effect
    why: str = ""

    def matched(self) -> Matched:
        """The rule as a verdict names it."""
        return Matched(self.rule.id, self.rule.digest, self.rule.title, self.why)


def deciding(policy: Policy, facts: Facts) -> list[Fit]:
    """The rules that fit a call and say whether it may run; those of the studio where none of the policy does."""
    return _fitting(policy.rules, facts) or _fitting(DEFAULTS, facts)


def _fitting(rules: Sequence[Rule], facts: Facts) -> list[Fit]:
    fits = (fit_of(rule, facts) for rule in rules)
    return [fit for fit in fits if fit is not None and fit.effect is not Effect.WAIT]


def fit_of(rule: Rule, facts: Facts) -> Fit | None:
    """What the rule says of the call; None when it does not fit it. `policy_explained.passed_over` says why not."""
    fit = _fit_but_for_counts(rule, facts)
    if fit is None or (rule.rate is not None and rule.rate not in facts.full):
        return None
    if rule.repeated is not None and facts.repeats < rule.repeated:
        return None
    if fit.why or (rule.rate is None and rule.repeated is None):
        return fit
    return Fit(rule, fit.effect, counted(rule, facts))


def counted(rule: Rule, facts: Facts) -> str:
    """What a rule that counts has found too much of."""
    said = []
    if rule.rate is not None:
        whose = facts.tool if rule.rate.of is Of.TOOL else "this workspace"
        said.append(f"{rule.rate.calls:,} attempts of {whose} began within {rule.rate.seconds:,} s")
    if rule.repeated is not None:
        said.append(f"the job asked for this same call {facts.repeats:,} times")
    return "; ".join(said)


def _named(rule: Rule, facts: Facts) -> bool:
    if rule.until is not None and rule.until <= facts.at:
        return False
    named = (
        (rule.kind, facts.kind.value),
        (rule.tool, facts.tool),
        (rule.function, facts.function),
        (rule.agent, facts.agent),
        (rule.starter, facts.starter),
    )
    if not all(patterns is None or patterns.holds(name) for patterns, name in named):
        return False
    return rule.open_world in (None, facts.open_world) and rule.tainted in (None, facts.tainted)


def _fit_but_for_counts(rule: Rule, facts: Facts) -> Fit | None:
    if not _named(rule, facts):
        return None
    settled = [condition.holds(facts.arguments) for condition in rule.arguments]
    if False in settled:
        return None
    if rule.odd:
        return Fit(rule, Effect.ASK, f"this rule cannot be read, so it asks: {rule.odd[0]}")
    if None in settled:
        if rule.effect is Effect.ALLOW:
            return None
        path = "/".join(rule.arguments[settled.index(None)].path)
        effect = Effect.WAIT if rule.effect is Effect.WAIT else Effect.ASK
        return Fit(rule, effect, f"the call leaves open what the rule looks at: {path}")
    return Fit(rule, rule.effect)


def _within(one: Rule, other: Rule) -> bool:
    """Whether each condition of `other` is a condition of `one` too, the same or tighter. `until` is no condition."""
    named = (
        (one.kind, other.kind),
        (one.tool, other.tool),
        (one.function, other.function),
        (one.agent, other.agent),
        (one.starter, other.starter),
    )
    return (
        all(_patterns_within(mine, theirs) for mine, theirs in named)
        and other.open_world in (None, one.open_world)
        and other.tainted in (None, one.tainted)
        and other.rate in (None, one.rate)
        and (other.repeated is None or (one.repeated is not None and one.repeated >= other.repeated))
        and all(condition in one.arguments for condition in other.arguments)
    )


def _patterns_within(one: Patterns | None, other: Patterns | None) -> bool:
    everything = Patterns(("*",))
    return (one or everything).within(other or everything)
