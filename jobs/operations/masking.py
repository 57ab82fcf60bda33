"""Known secrets are taken out of what is kept of jobs and calls before it is kept (RULES A14).

Secrets of the vault are taken out of everything, also of what is sent to a tool: an agent has no business with them.
What a function's own schema marks is meant for its server: it is kept sealed in the vault for the attempts alone, and a
marker stands in its place everywhere else. When anything of this fails, a marker is kept instead of the whole.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from base import canonical, db, prepared
from base.masking import SHOWN, Mask
from catalog.models import Function
from jobs.models import Call
from jobs.rules import secrets
from jobs.rules.orders import Outcome, Result
from jobs.rules.why import Why
from tenants.operations import masks, vault
from tenants.operations.masks import MARKER, CannotMask

__all__ = [
    "MARKER",
    "CannotMask",
    "keep",
    "marked",
    "outcome",
    "result",
    "safely",
    "text",
    "told",
    "value",
    "whole",
    "without_vault",
]

SEALED: Final = vault.OF_CALLS
SEALED_FOR: Final = timedelta(days=1)  # after the end of its call: till then it takes itself out of a late reply
MOST_KNOWN: Final = 5_000  # entries that a process remembers
# what expired stays, since a person may ask for it again
_FORGET: Final = f"""
DELETE FROM tenants_secret WHERE id IN (
    SELECT s.id FROM tenants_secret s
    JOIN jobs_call c
        ON c.id = CASE WHEN starts_with(s.name, '{SEALED}') THEN substr(s.name, {len(SEALED) + 1})::uuid END
    WHERE starts_with(s.name, '{SEALED}') AND c.ended_at < %s AND c.reason <> '{Why.EXPIRED}'
    LIMIT 100 FOR UPDATE OF s SKIP LOCKED
)
"""  # noqa: S608 - only words of ours
_known: dict[tuple[str, str], bool] = {}  # (entry, which schema) → whether it marks anything


def text(words: str) -> str:
    """A text without the tenant's secrets, or a marker. Demands an open write."""
    return safely(lambda: masks.of(db.writing_tenant()).uncut(words), MARKER) if words else words


def value(whole: Any) -> Any:
    """A JSON value without the tenant's secrets, or a marker. Demands an open write."""
    return safely(lambda: masks.mapped(whole, masks.of(db.writing_tenant())), MARKER) if whole else whole


def safely[Found](act: Callable[[], Found], otherwise: Found) -> Found:
    """What `act` gives; `otherwise` when it fails in whatever way but that the database went away."""
    try:
        return act()
    except db.GONE:
        raise
    except Exception:
        return otherwise


def marked(arguments: Any, function: Function) -> tuple[secrets.Path, ...]:
    """The places of a call's arguments that its function marks as secret."""
    entry = function.entry_digest
    return secrets.marked(arguments, function.input_schema) if _marks(entry, "input_schema", lambda: function) else ()


def without_vault(arguments: Any, paths: tuple[secrets.Path, ...], *, tenant: UUID) -> Any:
    """Arguments without the tenant's secrets, but at the places that are sealed for the tool.

    Demands an open read or write. Raises `CannotMask`.
    """
    mask = masks.of(tenant)
    if mask.is_empty:
        return arguments
    try:
        return secrets.put_back(masks.mapped(secrets.replaced(arguments, paths), mask), arguments, paths)
    except Exception as error:
        raise CannotMask("the secrets of the vault could not be taken out") from error


def told(trouble: str, arguments: Any, paths: tuple[secrets.Path, ...]) -> str:
    """What is wrong with some arguments, without what is secret in them."""
    return Mask(secrets.texts(arguments, paths))(trouble) if paths and trouble else trouble


def keep(call: UUID, arguments: Any, paths: tuple[secrets.Path, ...]) -> Any:
    """The arguments to keep with a call; what is secret in them is sealed for its attempts. Demands an open write.

    What was sealed for calls that are long over is forgotten on the way.
    """
    if not paths:
        return arguments
    prepared.change(_FORGET, [db.must_write() - SEALED_FOR])
    vault.put(_name(call), json.dumps(arguments, ensure_ascii=False))
    return secrets.replaced(arguments, paths)


def whole(call: Call, kept: Any) -> Any:
    """The arguments that are sent, of those that are kept. Demands an open read or write."""
    if not _has_marker(kept):
        return kept
    sealed = vault.find(call.tenant_id, _name(call.pk))
    return kept if sealed is None else canonical.parse(sealed)


def typed(call: Call, arguments: Any) -> tuple[Any, tuple[secrets.Path, ...]]:
    """(what a person typed for a call as it would be sent, the places in it that are secret).

    Where they left the marker of what is sealed, that stands again. Demands an open read or write.
    Raises `CannotMask`.
    """
    paths = marked(arguments, call.function) if call.function is not None else ()
    if paths:
        kept = call.arguments_body.data if call.arguments_body else call.arguments
        arguments = secrets.put_back(arguments, whole(call, kept), paths)
    return without_vault(arguments, paths, tenant=call.tenant_id), paths


def _name(call: UUID) -> str:
    return f"{SEALED}{call}"


def _has_marker(kept: Any) -> bool:
    if isinstance(kept, str):
        return kept == SHOWN
    if isinstance(kept, Mapping):
        return any(_has_marker(part) for part in kept.values())
    return any(_has_marker(part) for part in kept) if isinstance(kept, list) else False


def outcome(call: Call, ended: Outcome) -> Outcome:
    """How an attempt ended, without the tenant's secrets and the call's own. Demands an open write."""
    detail = ended.wire.detail
    if ended.result is None and not detail:
        return ended
    mask = _mask(call, ended.result)
    if mask is None:
        return ended
    result = result_of(call, ended.result, mask) if ended.result is not None else None
    return replace(ended, result=result, wire=replace(ended.wire, detail=safely(lambda: mask(detail), MARKER)))


def result(call: Call, found: Result) -> Result:
    """A late reply, masked alike. Demands an open write."""
    mask = _mask(call, found)
    return found if mask is None else result_of(call, found, mask)


def result_of(call: Call, found: Result, mask: Callable[[str], str]) -> Result:
    """A result with the secrets out of its text, its parts and its structure; markers where that fails."""

    def masked() -> Result:
        paths = _of_output(call, found)
        return replace(
            found,
            text=mask(found.text),
            content=tuple(secrets.mapped(dict(part), mask) for part in found.content),
            structured=secrets.mapped(secrets.replaced(found.structured, paths), mask),
            warning=mask(found.warning),
        )

    return safely(masked, Result(MARKER, found.is_error, warning=MARKER if found.warning else ""))


def _mask(call: Call, found: Result | None) -> Callable[[str], str] | None:
    """What takes secrets out of what came of a call; None when there are none, a marker for all when that fails."""

    def make() -> Callable[[str], str] | None:
        vaults = masks.of(call.tenant_id)
        own: list[str] = []
        if _marks(call.entry_digest, "input_schema", lambda: call.function) and call.function is not None:
            kept = call.arguments_body.data if call.arguments_body else call.arguments
            sent = whole(call, kept)
            own += secrets.texts(sent, marked(sent, call.function))
        if found is not None:
            own += secrets.texts(found.structured, _of_output(call, found))
        if not own:
            return None if vaults.is_empty else vaults
        also = Mask(own)
        return lambda words: also(vaults(words))

    def nothing(_words: str) -> str:
        return MARKER

    failed: Callable[[str], str] | None = nothing
    return safely(make, failed)


def _of_output(call: Call, found: Result) -> tuple[secrets.Path, ...]:
    if found.structured is None or not _marks(call.entry_digest, "output_schema", lambda: call.function):
        return ()
    assert call.function is not None  # noqa: S101 - without a function nothing is marked
    return secrets.marked(found.structured, call.function.output_schema)


def _marks(entry: str, schema: str, function: Callable[[], Function | None]) -> bool:
    """Whether one of a function's schemas marks anything. Known by the digest of its entry, which covers them, so that
    the function is read only for an entry that is new to this process."""
    key = (entry, schema)
    if not entry:
        return False
    if key not in _known:
        found = function()
        if len(_known) > MOST_KNOWN:
            _known.clear()
        _known[key] = found is not None and secrets.marks(getattr(found, schema))
    return _known[key]
