"""Large values live in a row of their own, so that lists and traces never load them."""

import json
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

from base import db
from jobs.models import Body, Call
from jobs.operations import masking
from jobs.queries.tables import BODIES
from jobs.rules.orders import Result

LARGE: Final = 8 * 1024  # bytes
RESULT_SHOWN: Final = 8 * 1024  # characters of a result kept on the call's own row


def keep_if_large(value: Any) -> tuple[Any, UUID | None]:
    """(value, None) for a small value, (None, id of its body) for one over 8 KiB of JSON."""
    size = len(json.dumps(value, ensure_ascii=False).encode())
    return (value, None) if size <= LARGE else (None, keep(value, size))


def keep(value: Any, size: int | None = None) -> UUID:
    """Keep a value in a body of its own; returns its id."""
    size = size if size is not None else len(json.dumps(value, ensure_ascii=False).encode())
    row = BODIES.new(tenant_id=db.writing_tenant(), data=value, size=size)
    BODIES.insert(row)
    return row.pk


def arguments_of(call: Call) -> Any:
    """The exact arguments of a call, wherever they are kept, with what is sealed of them (RULES A14)."""
    return masking.whole(call, kept_of(call))


def kept_of(call: Call) -> Any:
    """The arguments of a call as they are kept and shown, wherever: a marker stands where they are sealed."""
    return call.arguments if call.arguments_body_id is None else Body.objects.get(pk=call.arguments_body_id).data


def result(result: Result | None) -> tuple[str, UUID | None]:
    """(what the call's row shows of a result, the id of the body that keeps all of it)."""
    if result is None:
        return "", None
    plain = not result.content and result.structured is None and not result.warning
    if plain and len(result.text) <= RESULT_SHOWN:
        return result.text, None
    return result.text[:RESULT_SHOWN], keep(asdict(result))
