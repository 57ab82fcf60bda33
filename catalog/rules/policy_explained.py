"""Why the policy says what it says of one call: each rule that fits, and each that was passed over with the reason.

`judge` decides; this module tells of the same decision and shares its steps, so that the two cannot part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from catalog.rules import policy_words as words
from catalog.rules.conditions import ArgumentIs, Is
from catalog.rules.policy import (
    DEFAULTS,
    Facts,
    Fit,
    Policy,
    Verdict,
    Wait,
    deciding,
    fit_of,
    judge,
    narrower,
    waits,
)
from catalog.rules.policy_rules import Effect, Rule


class Part(StrEnum):
    """What a rule has to do with the verdict on a call."""

    DECIDES = "decides"
    WAITS = "waits"  # it does not decide whether, and keeps the call from beginning now
    BEATEN = "beaten"  # it fits, and another rule decides
    PASSED = "passed"  # it does not fit


@dataclass(frozen=True, slots=True)
class Told:
    """One rule and its part; `why` is a sentence. `says` is what it says of this call when it fits."""

    rule: Rule
    part: Part
    why: str
    says: Effect | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """The verdict on one call. `told` are the policy's rules in their order, then the defaults where they decide."""

    verdict: Verdict
    wait: Wait | None
    told: tuple[Told, ...]


def explain(policy: Policy, facts: Facts) -> Explained:
    """What the policy says of a call, rule by rule."""
    verdict, wait = judge(policy, facts), waits(policy, facts)
    fitting = deciding(policy, facts)
    decides = next(fit for fit in fitting if fit.matched() == verdict.rule)
    by_default = decides.rule in DEFAULTS
    told = [_told(rule, facts, fitting, decides) for rule in policy.rules]
    if by_default:
        told += [_told(rule, facts, fitting, decides) for rule in DEFAULTS]
    return Explained(verdict, wait, tuple(told))


def passed_over(rule: Rule, facts: Facts) -> str:
    """The first thing that keeps a rule from fitting a call; empty when it fits."""
    return next(_misses(rule, facts), "")


def _told(rule: Rule, facts: Facts, fitting: list[Fit], decides: Fit) -> Told:
    fit = fit_of(rule, facts)
    if fit is None:
        return Told(rule, Part.PASSED, passed_over(rule, facts))
    if fit.effect is Effect.WAIT:
        return Told(rule, Part.WAITS, f"{fit.why}, so it begins later".capitalize(), fit.effect)
    if fit.rule is decides.rule:
        return Told(rule, Part.DECIDES, fit.why or "Every condition of it holds.", fit.effect)
    return Told(rule, Part.BEATEN, _beaten(fit, fitting, decides), fit.effect)


def _beaten(fit: Fit, fitting: list[Fit], decides: Fit) -> str:
    by = f"“{decides.rule.title}”"
    if decides.effect is Effect.REFUSE and fit.effect is not Effect.REFUSE:
        return f"It fits, but {by} refuses, and refusing beats everything."
    if decides.rule.odd and not fit.rule.odd:
        return f"It fits, but {by} cannot be read, and such a rule asks."
    beaten = next((other for other in fitting if narrower(other.rule, fit.rule)), None)
    if beaten is not None and fit.effect is not Effect.REFUSE and not fit.rule.odd:
        return f"It fits, but “{beaten.rule.title}” is narrower."
    if fit.effect is decides.effect:
        return f"It fits and says the same; {by} is named, as it stands first."
    return f"It fits, but neither rule is narrower than the other, and {by} asks."


def _misses(rule: Rule, facts: Facts) -> Iterator[str]:
    if rule.until is not None and rule.until <= facts.at:
        yield f"It ended on {rule.until:%Y-%m-%d %H:%M} UTC{rule.until:%z}.".replace("UTC+0000", "UTC")
    for what, patterns, name in (
        ("kind", rule.kind, facts.kind.value),
        ("tool", rule.tool, facts.tool),
        ("function", rule.function, facts.function),
        ("agent", rule.agent, facts.agent),
        ("starter", rule.starter, facts.starter),
    ):
        if patterns is not None and not patterns.holds(name):
            yield f"It is for {what} {' or '.join(patterns.words)}; this call's is {name}."
    if rule.open_world not in (None, facts.open_world):
        yield f"The function {'may reach' if facts.open_world else 'says that it does not reach'} outside."
    if rule.tainted not in (None, facts.tainted):
        yield f"The job {'has read' if facts.tainted else 'has not read'} another plugin's manual."
    for condition in rule.arguments:
        settled = condition.holds(facts.arguments)
        if settled is False:
            yield _argument_misses(condition, facts)
        elif settled is None and rule.effect is Effect.ALLOW and not rule.odd:
            yield f"The call leaves open whether {words.argument(condition)}, and a rule that allows must be sure."
    if rule.rate is not None and rule.rate not in facts.full:
        yield f"Its rate has room: not yet {words.rate(rule.rate)}."
    if rule.repeated is not None and facts.repeats < rule.repeated:
        yield f"The job asked for this same call {facts.repeats:,} of {rule.repeated:,} times."


def _argument_misses(condition: ArgumentIs, facts: Facts) -> str:
    missing = ArgumentIs(condition.path, Is.ABSENT).holds(facts.arguments)
    if missing and condition.how is not Is.PRESENT:
        return f"{words.pointer(condition.path)} is left out, and the rule wants {words.argument(condition)}."
    return f"It does not hold that {words.argument(condition)}."
