"""Why the calls of a function wait for a person, and what to paste so that they do not (RULES C4, A11).

A fix is never a guess: a rule is offered only where the policy with it lets the function's calls run.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from catalog.rules.kinds import Kind, Undeclared
from catalog.rules.policy import DEFAULTS, Allow, Policy
from catalog.rules.policy_coverage import Outlook, cover
from catalog.rules.policy_rules import Rule, read_rules


class Way(StrEnum):
    """Where a fix is made."""

    DECLARE = "declare"  # in the server's own code
    APPROVE = "approve"  # on the tool's page
    RULE = "rule"  # a new rule of the policy
    MEND = "mend"  # the rule that holds it


@dataclass(frozen=True, slots=True)
class Fix:
    """One way out. `paste` is what to paste where that is not a link alone."""

    way: Way
    says: str
    paste: str = ""


_DEFAULT: Final = frozenset(rule.id for rule in DEFAULTS)


def why(outlook: Outlook, trouble: Undeclared | None) -> str:
    """Why every call of the function waits, in a sentence."""
    rule = outlook.verdict.rule
    if rule.id not in _DEFAULT:
        return f"The policy's rule “{rule.title}” asks{f': {rule.why}' if rule.why else ''}."
    if trouble is not None:
        return f"Nobody knows what it does: {trouble.reason}."
    return "It says that it may destroy or overwrite, and no rule of the policy lets it run unasked."


def fixes(
    policy: Policy, outlook: Outlook, trouble: Undeclared | None, at: datetime, *, trusted: bool = True
) -> tuple[Fix, ...]:
    """What to do so that its calls run, the best way first. `trusted` says whether the entry's own word counts."""
    found = []
    named = next((rule for rule in policy.rules if rule.id == outlook.verdict.rule.id), None)
    if named is not None and named.odd:
        return (Fix(Way.MEND, f"Mend the rule: {named.odd[0]}."),)
    if trouble is not None and outlook.entry.kind is Kind.UNDECLARED:
        if trusted:
            found.append(Fix(Way.DECLARE, "Say in its server what it does, and list the tool again.", trouble.fix))
        else:
            found.append(Fix(Way.APPROVE, "Look at what its server says of it, and approve the entry."))
    allowing = _allowing(outlook, named)
    if _runs_with(policy, allowing, outlook, at):
        says = "Add this rule, if its calls may run unasked."
        found.append(Fix(Way.RULE, says, json.dumps(allowing, ensure_ascii=False)))
    elif named is not None:
        found.append(Fix(Way.MEND, f"No narrower rule can stand over “{named.title}”: change that rule itself."))
    return tuple(found)


def _allowing(outlook: Outlook, named: Rule | None) -> dict[str, Any]:
    """A rule that is for this function alone, and narrower than the one that holds it where that is to be had."""
    entry = outlook.entry
    rule: dict[str, Any] = {
        "id": f"allow-{entry.tool}-{entry.function}"[:100],
        "title": f"{entry.tool}.{entry.function} runs unasked"[:200],
        "effect": "allow",
        "tool": entry.tool,
        "function": entry.function,
    }
    if named is not None and named.kind is not None:
        rule["kind"] = entry.kind.value
    if named is not None and named.open_world is not None:
        rule["open_world"] = entry.open_world
    return rule


def _runs_with(policy: Policy, rule: dict[str, Any], outlook: Outlook, at: datetime) -> bool:
    added = read_rules([rule])
    if added[0].odd or any(other.id == added[0].id for other in policy.rules):
        return False
    (then,) = cover(Policy((*policy.rules, *added)), [outlook.entry], (), at).outlooks
    return isinstance(then.verdict, Allow)
