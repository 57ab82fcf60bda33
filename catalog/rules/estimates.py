"""What tool definitions cost in every model request: one estimate for command, pages and API (RULES T1).

A definition is counted as the compact JSON of exactly the name, description and input schema that the model is sent.
What a provider wraps around it is not counted, and other models cut text otherwise, so every figure is an "about".
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from base import tokens

METHOD: Final = f"{tokens.BASIS} tokens of the compact JSON of name, description and input schema"
ERROR: Final = "other models count up to a tenth more or less, and providers add a few tokens of their own"
ONE_IS_LONG: Final = 1_500  # tokens of one definition that lint warns about (RULES T2)
SHARED_LEAST: Final = 20  # tokens of a part that is worth telling about


@dataclass(frozen=True, slots=True)
class Definition:
    """One function as a model is sent it. `name` is what the model calls it by (RULES C1)."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """What one definition comes to. `label` is `tool.function`, or `oz.…` for the platform's own."""

    label: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Shared:
    """A part of the schemas that several definitions repeat word for word: where it was met first, and its cost."""

    place: str
    definitions: int
    tokens: int  # of all its repetitions after the first


def as_sent(definition: Definition) -> str:
    """The text that is counted. A schema's keys are sorted: as the server, a file or the database had them, one and the
    same definition would come to different figures."""
    name, description = (_json(text) for text in (definition.name, definition.description))
    return f'{{"name":{name},"description":{description},"input_schema":{_json(definition.input_schema)}}}'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def estimate(definitions: Sequence[Definition]) -> list[int]:
    """About how many tokens each definition costs, in order. A schema too deep to be written raises `ValueError`."""
    try:
        return tokens.counts([as_sent(definition) for definition in definitions])
    except RecursionError as error:
        raise ValueError("a schema is nested too deep to be sent") from error


def biggest(costs: Iterable[Cost], most: int = 3) -> tuple[Cost, ...]:
    """The dearest first; equal ones by name."""
    return tuple(sorted(costs, key=lambda cost: (-cost.tokens, cost.label))[:most])


def drop_to_fit(costs: Iterable[Cost], budget: int) -> tuple[Cost, ...]:
    """As few as possible to leave out so that the rest fits; the last of them no bigger than it need be."""
    left = list(biggest(costs, most=1_000_000))
    over = sum(cost.tokens for cost in left) - budget
    dropped: list[Cost] = []
    while over > 0 and left:
        enough = [cost for cost in left if cost.tokens >= over]
        taken = enough[-1] if enough else left[0]
        left.remove(taken)
        dropped.append(taken)
        over -= taken.tokens
    return tuple(dropped)


def shared(definitions: Sequence[Definition]) -> Shared | None:
    """The part of the input schemas whose repetition across definitions costs most, if any is worth telling."""
    places: dict[str, str] = {}
    owners: dict[str, set[str]] = defaultdict(set)
    for definition in definitions:
        for place, part in _parts(definition.input_schema, "input_schema"):
            text = json.dumps(part, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            places.setdefault(text, f"{definition.name}: {place}")
            owners[text].add(definition.name)
    repeated = [text for text, names in owners.items() if len(names) > 1]
    if not repeated:
        return None
    counted = zip(repeated, tokens.counts(repeated), strict=True)
    found = [
        Shared(places[text], len(owners[text]), count * (len(owners[text]) - 1))
        for text, count in counted
        if count >= SHARED_LEAST
    ]
    return max(found, key=lambda one: (one.tokens, one.place), default=None)


def _parts(schema: Any, place: str, depth: int = 0) -> Iterable[tuple[str, Any]]:
    """Every object inside a schema, the schema itself left out, to a depth that no honest one passes."""
    if depth > 12:
        return
    inside = schema.items() if isinstance(schema, Mapping) else enumerate(schema) if isinstance(schema, list) else ()
    for key, value in inside:
        here = f"{place}.{key}" if isinstance(key, str) else f"{place}[{key}]"
        if isinstance(value, Mapping) and len(value) > 1:
            yield here, value
        yield from _parts(value, here, depth + 1)
