"""Our values as the MCP SDK's: tools as a client lists them, and what its calls came to."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import mcp_types as types
from pydantic import ValidationError

from base import ids
from catalog.rules.estimates import Definition
from jobs.operations.outside import Offered
from jobs.queries.outside import Answered
from jobs.rules import texts
from jobs.rules.states import CallState

PENDING: str = "oz0/pending"


def tool(offered: Offered) -> types.Tool:
    """One function as a client lists it. No output schema: a pending result would break it."""
    return types.Tool(
        name=offered.definition.name,
        description=offered.definition.description,
        input_schema=_object_schema(offered.definition),
        annotations=_annotations(offered.annotations),
    )


def _object_schema(definition: Definition) -> dict[str, Any]:
    """MCP asks for `type: object` at the root, which every function's arguments are here."""
    return {"type": "object", **definition.input_schema}


def _annotations(hints: Mapping[str, Any]) -> types.ToolAnnotations | None:
    try:
        return types.ToolAnnotations.model_validate(dict(hints)) if hints else None
    except ValidationError:  # a server's own odd hints are no reason to hide its function
        return None


def result(call_id: UUID, found: Answered, protocol: str) -> types.CallToolResult:
    """A call that is over: the tool's own content where that is the whole answer, else our words (RULES U9)."""
    told: dict[str, Any] = {"content": [{"type": "text", "text": found.text}], "isError": found.is_error}
    told["_meta"] = {"oz0/call": ids.show(ids.CALL, call_id), "oz0/state": found.state.value}
    whole = dict(told)
    if found.content:
        whole["content"] = list(found.content)
    if isinstance(found.structured, dict) or (found.structured is not None and protocol >= "2026"):
        whole["structuredContent"] = found.structured
    try:
        return types.CallToolResult.model_validate(whole)
    except ValidationError:  # content of a sort that the SDK does not know is told as the model reads it
        return types.CallToolResult.model_validate(told)


def pending(call_id: UUID, state: CallState) -> types.CallToolResult:
    """A call that is not over: no error, and what to do next (RULES G5)."""
    shown = ids.show(ids.CALL, call_id)
    return types.CallToolResult.model_validate(
        {
            "content": [{"type": "text", "text": texts.pending(shown, state)}],
            "_meta": {"oz0/call": shown, "oz0/state": state.value, PENDING: True},
        }
    )


def said(text: str) -> types.CallToolResult:
    """What the gateway itself says, where no call was made."""
    return types.CallToolResult.model_validate({"content": [{"type": "text", "text": text}]})


def not_taken(why: str) -> types.CallToolResult:
    """A call that was not taken in."""
    return types.CallToolResult.model_validate({"content": [{"type": "text", "text": why}], "isError": True})
