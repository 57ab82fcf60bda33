"""The whole MCP result of a call, measured as it goes over the wire (RULES W2, W5)."""

import json
from dataclasses import replace
from typing import Any, Final

from mcp.types import CallToolResult, TextContent

from budgets.sessions.bounds import Bound, Bounds, Stopped
from budgets.sessions.calls import Call, Failed, Recovery
from budgets.sessions.credentials import NoCredentials

STUCK: Final = (
    "A worker of this call is still in the operating system: it may finish there, and delay the process's end."
)
LONGEST: Final = 2_000  # characters of a message
type Trouble = Stopped | Failed | NoCredentials | None


def result(call: Call, trouble: Trouble, *, bounds: Bounds, stuck: bool = False) -> CallToolResult:
    """What a call came to; where that is too large without the end of its data, or without all of it and with all that
    is needed to go on."""
    whole = _result(trouble, call.data(), call.recovery, stuck=stuck)
    error = trouble or Stopped(Bound.RESPONSE, f"The result has more than {bounds.result} bytes.")
    while not fits(whole, bounds):
        if not call.shorter():
            call.left_out()
            return _compact(error, call.recovery, bounds, stuck=stuck)
        whole = _result(error, call.data(), call.recovery, stuck=stuck)
    return whole


def refused(code: str, why: str, recovery: Recovery, bounds: Bounds) -> CallToolResult:
    """What a call with bad arguments came to."""
    whole = _result(Failed(code, why), None, recovery, stuck=False)
    return whole if fits(whole, bounds) else _compact(Failed(code, why), recovery, bounds, stuck=False)


def _compact(
    trouble: Stopped | Failed | NoCredentials, recovery: Recovery, bounds: Bounds, *, stuck: bool
) -> CallToolResult:
    """Without data, and without what is known of each check where that is still too large: the identities stay."""
    whole = _result(trouble, None, recovery, stuck=stuck, left_out=True)
    if fits(whole, bounds):
        return whole
    return _result(trouble, None, replace(recovery, items=[]), stuck=stuck, left_out=True)


def fits(whole: CallToolResult, bounds: Bounds) -> bool:
    """Whether it goes over the wire, with what the SDK adds."""
    return len(whole.model_dump_json(by_alias=True).encode()) + bounds.reserve <= bounds.result


def code_of(trouble: Stopped | Failed | NoCredentials) -> str:
    """The word of a failure."""
    match trouble:
        case Stopped():
            return trouble.bound.value
        case Failed():
            return trouble.code
        case NoCredentials():
            return "credentials_missing"


def _result(trouble: Trouble, data: Any, recovery: Recovery, *, stuck: bool, left_out: bool = False) -> CallToolResult:
    error: dict[str, Any] | None = (
        None if trouble is None else {"code": code_of(trouble), "message": str(trouble)[:LONGEST]}
    )
    if error is not None and stuck:
        error |= {"worker_may_delay_exit": True, "message": f"{error['message']} {STUCK}"}
    if error is not None and left_out:
        error |= {"data_left_out": True}
    said = {"ok": trouble is None, "data": data, "error": error, "recovery": recovery.as_json()}
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=said, is_error=trouble is not None
    )
