"""Editing a policy: who may, what was typed, and the steps of the editor. A draft is a list of rules as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from base.canonical import NotCanonical, parse
from catalog.rules.conditions import Is
from catalog.rules.policy_rules import RULES_MOST

EDITING_ROLES: Final = frozenset({"admin"})
DRAFT_LONGEST: Final = 1_000_000  # characters
NOTE_LONGEST: Final = 2_000  # characters of why a version was made
_LISTED: Final = ("kind", "tool", "function", "agent", "starter")
_FLAGS: Final = ("open_world", "tainted")


class BadDraft(ValueError):
    """What was typed is no list of rules; the message says why and where."""


def why_not_edit(role: str) -> str | None:
    """Why a person of this role may not change the policy; None when they may. The text explains a disabled button."""
    return None if role in EDITING_ROLES else f"Admins change the policy; your role here is {role}."


def read_draft(text: str) -> list[Any]:
    """The rules in a draft's text. Their parts are not looked at here. Raises `BadDraft`."""
    if len(text) > DRAFT_LONGEST:
        raise BadDraft(f"the policy is {len(text):,} characters long; up to {DRAFT_LONGEST:,} are kept")
    if "\0" in text:
        raise BadDraft("the text holds the character NUL, which no text can hold")
    try:
        rules = parse(text)
    except NotCanonical as error:
        raise BadDraft(f"{error.path}: {error.what}") from error
    if not isinstance(rules, list):
        raise BadDraft("a policy is a list of rules: it begins with [")
    if len(rules) > RULES_MOST:
        raise BadDraft(f"a policy has up to {RULES_MOST} rules; this one has {len(rules):,}")
    return rules


def spell(rules: Any) -> str:
    """A policy as text: each rule on a line of its own, so that a person can read, move and compare lines."""
    if not isinstance(rules, list | tuple):
        return json.dumps(rules, ensure_ascii=False, indent=1)
    lines = ",\n".join(json.dumps(rule, ensure_ascii=False) for rule in rules)
    return f"[\n{lines}\n]" if rules else "[]"


def moved(rules: Sequence[Any], at: int, by: int) -> list[Any]:
    """The rules with one of them moved up (−1) or down (+1); the same where it cannot move."""
    found, to = list(rules), at + by
    if 0 <= at < len(found) and 0 <= to < len(found):
        found.insert(to, found.pop(at))
    return found


def without(rules: Sequence[Any], at: int) -> list[Any]:
    """The rules without one of them."""
    return [rule for place, rule in enumerate(rules) if place != at]


def put(rules: Sequence[Any], at: int | None, rule: Any) -> list[Any]:
    """The rules with one of them replaced, or a new one at the end."""
    found = list(rules)
    if at is not None and 0 <= at < len(found):
        found[at] = rule
    else:
        found.append(rule)
    return found


def rule_of(typed: Mapping[str, str], arguments: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """The rule that a form's fields spell; what is left empty is left out. It may be odd: `oddities` says so.

    `arguments` are (path, is, value) as typed. A value is JSON, or else text.
    """
    rule: dict[str, Any] = {key: typed[key].strip() for key in ("id", "title") if typed.get(key, "").strip()}
    rule["effect"] = typed.get("effect", "")
    for key in _LISTED:
        words = typed.get(key, "").replace(",", " ").split()
        if words:
            rule[key] = words[0] if len(words) == 1 else words
    for key in _FLAGS:
        if typed.get(key):
            rule[key] = {"yes": True, "no": False}.get(typed[key], typed[key])
    conditions = [_condition(*typed_one) for typed_one in arguments if any(part.strip() for part in typed_one)]
    if conditions:
        rule["arguments"] = conditions
    if typed.get("rate_calls", "").strip() or typed.get("rate_seconds", "").strip():
        of = typed.get("rate_of") or "tool"
        rate = {"calls": _number(typed.get("rate_calls", "")), "seconds": _number(typed.get("rate_seconds", ""))}
        rule["rate"] = rate if of == "tool" else {**rate, "of": of}
    if typed.get("repeated", "").strip():
        rule["repeated"] = _number(typed["repeated"])
    if typed.get("until", "").strip():
        rule["until"] = typed["until"].strip()
    return rule


def fields_of(rule: Any) -> dict[str, str] | None:
    """A rule as the fields of the form, the inverse of `rule_of`; None where the form cannot show all of it."""
    if not isinstance(rule, Mapping):
        return None
    found = {key: value for key in ("id", "title", "effect", "until") if isinstance(value := rule.get(key, ""), str)}
    found |= {key: " ".join(_words(rule[key])) for key in _LISTED if key in rule and _words(rule[key])}
    found |= {key: "yes" if rule[key] else "no" for key in _FLAGS if isinstance(rule.get(key), bool)}
    rate = rule.get("rate")
    if isinstance(rate, Mapping):
        found |= {f"rate_{key}": str(value) for key, value in rate.items()}
    if "repeated" in rule:
        found["repeated"] = str(rule["repeated"])
    return found if rule_of(found, arguments_of(rule)) == _plain(rule) else None


def arguments_of(rule: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """A rule's conditions on arguments as (path, is, value) of the form."""
    listed = rule.get("arguments", ())
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        return []
    return [
        (str(one.get("path", "")), str(one.get("is", "")), _spelled(one["value"]) if "value" in one else "")
        for one in listed
    ]


def _plain(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule as the form would spell it: a list of one name is that name, and a tool's rate does not say so."""
    found = dict(rule)
    for key in _LISTED:
        if key in found and len(_words(found[key])) == 1:
            found[key] = _words(found[key])[0]
    if isinstance(found.get("rate"), Mapping) and found["rate"].get("of") == "tool":
        found["rate"] = {key: value for key, value in found["rate"].items() if key != "of"}
    return {key: value for key, value in found.items() if value != ""}


def _words(value: Any) -> list[str]:
    words = [value] if isinstance(value, str) else value
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else []


def _condition(path: str, how: str, value: str) -> dict[str, Any]:
    condition: dict[str, Any] = {"path": path.strip(), "is": how}
    if value.strip() or how not in (Is.PRESENT, Is.ABSENT):
        condition["value"] = _value(value)
    return condition


def _value(typed: str) -> Any:
    try:
        return parse(typed)
    except NotCanonical:
        return typed.strip()


def _spelled(value: Any) -> str:
    """A value as it is typed: text as it is, where it would not be read as something else."""
    if isinstance(value, str) and value == value.strip() and _value(value) == value and value:
        return value
    return json.dumps(value, ensure_ascii=False)


def _number(typed: str) -> Any:
    text = typed.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
