"""Reading a tenant's policy: a list of rules as JSON becomes `Rule` values, and a rule that cannot be read stays one.

    {"id": "big-charges", "title": "big charges ask", "effect": "ask", "tool": "billing", "function": ["charge"],
     "kind": ["write"], "agent": "clerk-*", "starter": ["api_key"], "open_world": true, "tainted": true,
     "arguments": [{"path": "/amount", "is": "more_than", "value": 10000}], "until": "2027-01-01T00:00:00+00:00",
     "rate": {"calls": 10, "seconds": 60}, "repeated": 5}

Only `id` and `effect` are required; what is left out holds for every call.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from base import canonical
from catalog.rules.conditions import ArgumentIs, Patterns, read_argument
from catalog.rules.kinds import Kind
from catalog.rules.rates import Rate, read_rate

RULES_MOST: Final = 500
REPEATED_LEAST: Final = 2
REPEATED_MOST: Final = 1_000
STARTERS: Final = ("person", "api_key", "routine", "event")
KEYS: Final = (
    *("id", "title", "effect", "until"),
    *("kind", "tool", "function", "agent", "starter", "open_world", "tainted", "arguments"),
    *("rate", "repeated"),
)

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}\Z")
_WORD: Final = re.compile(r"[A-Za-z0-9_*-]{1,128}\Z")


class Effect(StrEnum):
    """What a rule says of the calls it fits."""

    ALLOW = "allow"
    ASK = "ask"
    REFUSE = "refuse"
    WAIT = "wait"  # for a rate: the attempt begins when the rate has room again


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. A condition that is None holds for every call.

    `digest` is of the rule's content without its id: an approval is bound to both (RULES A4). `odd` says what of it
    cannot be read: such a rule asks, whatever it says it does (RULES A2), and the conditions that can be read hold.
    """

    id: str
    digest: str
    title: str
    effect: Effect
    kind: Patterns | None = None
    tool: Patterns | None = None
    function: Patterns | None = None
    agent: Patterns | None = None
    starter: Patterns | None = None
    open_world: bool | None = None
    tainted: bool | None = None
    arguments: tuple[ArgumentIs, ...] = ()
    rate: Rate | None = None
    repeated: int | None = None
    until: datetime | None = None
    odd: tuple[str, ...] = ()


def read_rules(raw: Any) -> tuple[Rule, ...]:
    """The rules of a policy, in their order. Never raises: what cannot be read becomes a rule that asks."""
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        return (_whole("unreadable-policy", raw, "the policy is not a list of rules"),)
    if len(raw) > RULES_MOST:
        return (_whole("unreadable-policy", None, f"the policy has more than {RULES_MOST} rules"),)
    return tuple(_read(rule, at) for at, rule in enumerate(raw))


def oddities(raw: Any) -> tuple[str, ...]:
    """Everything that keeps a policy from being saved, each with the rule it is in; empty when all is well."""
    rules = read_rules(raw)
    found = [f"rule {at + 1} ({rule.id}): {odd}" for at, rule in enumerate(rules) for odd in rule.odd]
    ids = [rule.id for rule in rules]
    found += [
        f"rule {at + 1} ({name}): another rule before it has this id" for at, name in enumerate(ids) if name in ids[:at]
    ]
    return tuple(found)


def _read(raw: Any, at: int) -> Rule:
    name = f"rule-{at + 1}"
    if not isinstance(raw, Mapping):
        return _whole(name, raw, "the rule is not a map")
    reader = _Reader(raw)
    identity = raw.get("id")
    if not isinstance(identity, str) or not _ID.match(identity):
        reader.odd.append("id is up to 100 of letters, digits, _ . : and -")
        identity = name
    title = raw.get("title", "")
    if not isinstance(title, str) or len(title) > 200:
        reader.odd.append("title is a text of up to 200 characters")
        title = ""
    effect = raw.get("effect")
    if effect not in list(Effect):
        reader.odd.append(f"effect is one of {', '.join(Effect)}")
        effect = Effect.ASK
    rate, repeated = reader.rate(), reader.repeated()
    if effect == Effect.WAIT and "rate" not in raw:
        reader.odd.append("a rule that waits has a rate; without one it would wait for ever")
        effect = Effect.ASK
    if effect == Effect.ALLOW and ("rate" in raw or "repeated" in raw):
        reader.odd.append("a rule with a rate or repeated holds once there is too much: it asks, refuses or waits")
        rate = repeated = None
    reader.odd += [f"{key} is not a part of a rule" for key in raw if key not in KEYS]
    return Rule(
        id=identity,
        digest=_digest(raw),
        title=title or identity,
        effect=Effect(effect),
        kind=reader.words("kind", tuple(Kind)),
        tool=reader.patterns("tool"),
        function=reader.patterns("function"),
        agent=reader.patterns("agent"),
        starter=reader.words("starter", STARTERS),
        open_world=reader.flag("open_world"),
        tainted=reader.flag("tainted"),
        arguments=reader.arguments(),
        rate=rate,
        repeated=repeated,
        until=reader.until(),
        odd=tuple(reader.odd),
    )


class _Reader:
    """Reads the conditions of one rule; one that is odd is noted and then holds for every call."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.odd: list[str] = []

    def patterns(self, key: str) -> Patterns | None:
        if key not in self.raw:
            return None
        value = self.raw[key]
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not listed or not all(isinstance(w, str) and _WORD.match(w) for w in listed):
            self.odd.append(f"{key} is a name or a list of names, where * stands for any letters")
            return None
        return Patterns(tuple(listed))

    def words(self, key: str, known: tuple[str, ...]) -> Patterns | None:
        found = self.patterns(key)
        if found is not None and not set(found.words) <= set(known):
            self.odd.append(f"{key} is among {', '.join(known)}")
            return None
        return found

    def flag(self, key: str) -> bool | None:
        if key not in self.raw:
            return None
        value = self.raw[key]
        if not isinstance(value, bool):
            self.odd.append(f"{key} is true or false")
            return None
        return value

    def arguments(self) -> tuple[ArgumentIs, ...]:
        listed = self.raw.get("arguments", [])
        if not isinstance(listed, list):
            self.odd.append("arguments is a list of conditions")
            return ()
        found = []
        for raw in listed:
            try:
                found.append(read_argument(raw))
            except ValueError as error:
                self.odd.append(str(error))
        return tuple(found)

    def rate(self) -> Rate | None:
        if "rate" not in self.raw:
            return None
        try:
            return read_rate(self.raw["rate"])
        except ValueError as error:
            self.odd.append(str(error))
            return None

    def repeated(self) -> int | None:
        if "repeated" not in self.raw:
            return None
        value = self.raw["repeated"]
        if not isinstance(value, int) or isinstance(value, bool) or not REPEATED_LEAST <= value <= REPEATED_MOST:
            self.odd.append(f"repeated is a whole number from {REPEATED_LEAST} to {REPEATED_MOST:,}")
            return None
        return value

    def until(self) -> datetime | None:
        if "until" not in self.raw:
            return None
        try:
            end = datetime.fromisoformat(self.raw["until"])
        except (TypeError, ValueError):
            end = None
        if end is None or end.tzinfo is None:
            self.odd.append("until is a time with its zone, such as 2027-01-01T00:00:00+00:00")
            return None
        return end


def _whole(name: str, raw: Any, odd: str) -> Rule:
    return Rule(id=name, digest=_digest(raw), title="a rule that cannot be read", effect=Effect.ASK, odd=(odd,))


def _digest(raw: Any) -> str:
    content = {key: value for key, value in raw.items() if key != "id"} if isinstance(raw, Mapping) else raw
    return canonical.digest_of_any(content)
