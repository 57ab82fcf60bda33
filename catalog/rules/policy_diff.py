"""What changed between two versions of a policy, rule by rule; and two people's changes to one version put together.

A rule is the same one while it has the same id. A place in the list counts as changed only where a rule overtook
another one that is in both versions.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from base.canonical import digest_of_any
from catalog.rules.listing_diff import Change, changed_fields


class How(StrEnum):
    """What became of a rule."""

    NEW = "new"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One rule that is not what or where it was; `after` is None when it is gone, `before` when it is new."""

    how: How
    name: str
    before: Any
    after: Any
    fields: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """Two drafts of one version as one. `clashes` name the rules that both changed otherwise: yours was taken."""

    rules: tuple[Any, ...]
    clashes: tuple[str, ...]


def compare(before: Any, after: Any) -> tuple[RuleChange, ...]:
    """The rules that changed, those of the newer version first, in its order."""
    old, new = _by_name(before), _by_name(after)
    moved = _moved([name for name in old if name in new], [name for name in new if name in old])
    found = []
    for name, rule in new.items():
        if name not in old:
            found.append(RuleChange(How.NEW, name, None, rule))
        elif not _same(old[name], rule):
            found.append(RuleChange(How.CHANGED, name, old[name], rule, _fields(old[name], rule)))
        elif name in moved:
            found.append(RuleChange(How.MOVED, name, old[name], rule))
    return (*found, *(RuleChange(How.GONE, name, rule, None) for name, rule in old.items() if name not in new))


def merge(base: Any, mine: Any, theirs: Any) -> Merged:
    """My changes of `base` made to `theirs`: their order, with what I added in its place behind the rule before it.

    Where both changed one rule otherwise, mine is taken, and named; one that I changed and they took out comes back.
    """
    was, my, their = _by_name(base), _by_name(mine), _by_name(theirs)
    result = dict(their)
    clashes = []
    for name in was.keys() | my.keys():
        if _same(was.get(name), my.get(name)):
            continue  # I left it as it was
        if not _same(was.get(name), their.get(name)) and not _same(my.get(name), their.get(name)):
            clashes.append(name)
        if name not in my:
            result.pop(name, None)
        elif name in result:
            result[name] = my[name]
    order = list(result)
    for at, name in enumerate(my):
        if name not in result and not _same(was.get(name), my[name]):
            before = next((other for other in reversed(list(my)[:at]) if other in order), None)
            order.insert(order.index(before) + 1 if before is not None else len(order) if at else 0, name)
            result[name] = my[name]
    if moved_by_me := _order_of(was, my):
        order = _in_order(order, moved_by_me)
    return Merged(tuple(result[name] for name in order), tuple(sorted(clashes)))


def _order_of(was: Mapping[str, Any], my: Mapping[str, Any]) -> list[str]:
    """My order, when I moved a rule; else nothing."""
    both = [name for name in my if name in was]
    return list(my) if both != [name for name in was if name in my] else []


def _in_order(names: list[str], order: Sequence[str]) -> list[str]:
    """The names, those that `order` has in its order, in the places that they take together."""
    mine = iter([name for name in order if name in names])
    known = set(order)
    return [next(mine) if name in known else name for name in names]


def _by_name(rules: Any) -> dict[str, Any]:
    """Each rule by its id; one without an id of its own by its place."""
    listed = rules if isinstance(rules, list | tuple) else [] if rules is None else [rules]
    names = [_id(rule) for rule in listed]
    often = Counter(names)
    return {
        name if name and often[name] == 1 else f"{name or 'rule'} (number {at + 1})": rule
        for at, (name, rule) in enumerate(zip(names, listed, strict=True))
    }


def _id(rule: Any) -> str:
    name = rule.get("id") if isinstance(rule, Mapping) else None
    return name if isinstance(name, str) else ""


def _same(one: Any, other: Any) -> bool:
    return digest_of_any(one) == digest_of_any(other)


def _fields(before: Any, after: Any) -> tuple[Change, ...]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return changed_fields(before, after)
    return (Change("rule", before, after),)


def _moved(old: Sequence[str], new: Sequence[str]) -> frozenset[str]:
    """The fewest names that have to move to turn one order into the other: those off its longest common run."""
    place = {name: at for at, name in enumerate(old)}
    tails: list[tuple[int, str]] = []  # (place, name) that ends the best run of each length so far
    before: dict[str, str | None] = {}
    for name in new:
        at = bisect_left(tails, (place[name], name))
        before[name] = tails[at - 1][1] if at else None
        tails[at : at + 1] = [(place[name], name)]
    kept, last = set(), tails[-1][1] if tails else None
    while last is not None:
        kept.add(last)
        last = before[last]
    return frozenset(new) - kept
