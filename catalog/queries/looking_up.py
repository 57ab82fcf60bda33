"""Looking through the functions of one agent (RULES T4). Demands an open read or write."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final
from uuid import UUID

from base import prepared
from catalog.models import Function
from catalog.rules.estimates import Definition
from catalog.rules.looking_up import Entry, Shelf, shelve

_REMEMBERED: Final = 64  # shelves that a process keeps; the rows of a listing never change
_LOOKED_AT: Final = """
SELECT f.model_name, f.description,
    CASE WHEN jsonb_typeof(f.input_schema -> 'properties') = 'object'
        THEN (SELECT jsonb_agg(k) FROM jsonb_object_keys(f.input_schema -> 'properties') k) END
FROM catalog_function f WHERE f.id IN (SELECT value::uuid FROM jsonb_array_elements_text(%s::text::jsonb))
"""


def ranked(granted: Mapping[str, UUID], query: str) -> list[str]:
    """The granted functions that fit the query, by the names their models use, the best first."""
    return _shelf(tuple(sorted(granted.values()))).ranked(query)


def definitions(functions: Sequence[UUID]) -> list[Definition]:
    """These functions exactly as a model is sent them, in this order."""
    rows = Function.objects.in_bulk(functions)
    found = (rows[function] for function in functions)
    return [Definition(row.model_name, row.description, row.input_schema) for row in found]


@lru_cache(_REMEMBERED)
def _shelf(functions: tuple[UUID, ...]) -> Shelf:
    rows = prepared.fetch(_LOOKED_AT, [json.dumps([str(function) for function in functions])])
    return shelve(Entry(name, description, tuple(json.loads(keys or "[]"))) for name, description, keys in rows)
