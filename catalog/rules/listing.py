"""A server's own listing as values: what each entry's digest covers, and what is wrong with an entry (RULES C2, C3)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from base.canonical import digest_of_any
from catalog.rules.servers import ListedFunction, MeasuredListing


def entry(raw: Mapping[str, Any]) -> ListedFunction:
    """One entry of `tools/list` as the server sent it. Raises `ValueError` that says what is wrong with it.

    Hints and `_meta` are kept as they came, odd types included: who reads them decides what an odd value means.
    """
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("an entry has no name")
    schema = raw.get("inputSchema")
    if not isinstance(schema, Mapping):
        raise ValueError(f"{name[:80]!r} has no input schema")
    output = raw.get("outputSchema")
    if output is not None and not isinstance(output, Mapping):
        raise ValueError(f"{name[:80]!r} has an output schema that is not an object")
    title, description = _text(raw.get("title")), _text(raw.get("description"))
    annotations, meta = _object(raw.get("annotations")), _object(raw.get("_meta"))
    return ListedFunction(
        name=name,
        title=title,
        description=description,
        input_schema=schema,
        output_schema=output,
        annotations=annotations,
        meta=meta,
        digest=digest_of_any(
            {
                "name": name,
                "title": title,
                "description": description,
                "inputSchema": schema,
                "outputSchema": output,
                "annotations": annotations,
                "_meta": meta,
            }
        ),
    )


def listing(raw: Iterable[object], *, protocol: str, server_name: str, server_version: str) -> MeasuredListing:
    """The listing made of every page's entries. What cannot be called by name is left out and named in `problems`."""
    functions: list[ListedFunction] = []
    problems: list[str] = []
    for item in raw:
        if not isinstance(item, Mapping):
            problems.append("an entry is not an object")
            continue
        try:
            functions.append(entry(item))
        except ValueError as error:
            problems.append(str(error))
        except RecursionError:
            problems.append(f"{str(item.get('name'))[:80]!r} is nested too deep to read")
    twice = {name for name, times in Counter(function.name for function in functions).items() if times > 1}
    problems.extend(f"{name[:80]!r} is listed twice" for name in sorted(twice))
    kept = tuple(function for function in functions if function.name not in twice)
    return MeasuredListing(
        digest=listing_digest(kept),
        protocol=protocol,
        server_name=server_name,
        server_version=server_version,
        functions=kept,
        problems=tuple(problems),
    )


def listing_digest(functions: Iterable[ListedFunction]) -> str:
    """A digest of all entries that does not depend on their order."""
    return digest_of_any(sorted([function.name, function.digest] for function in functions))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
