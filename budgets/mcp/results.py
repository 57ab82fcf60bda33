"""The whole MCP result of a call, measured as it goes over the wire (RULES W2, W5)."""

import json
from typing import Any, Final

from mcp.types import CallToolResult, TextContent

from budgets.sessions.bounds import Bound, Bounds, Stopped
from budgets.sessions.calls import Call, Failed, Recovery
from budgets.sessions.credentials import NoCredentials

STUCK: Final = (
    "A worker of this call is still in the operating system: it may finish there, and delay the process's end."
)
type Trouble = Stopped | Failed | NoCredentials | None


def result(call: Call, trouble: Trouble, *, bounds: Bounds, stuck: bool = False) -> CallToolResult:
    """What a call came to; without its data where that makes it too large, with all that is needed to go on."""
    whole = _result(trouble, call.data(), call.recovery, stuck=stuck)
    if fits(whole, bounds):
        return whole
    call.left_out()
    error = trouble or Stopped(Bound.RESPONSE, f"The result has more than {bounds.result} bytes.")
    return _result(error, None, call.recovery, stuck=stuck, left_out=True)


def refused(code: str, why: str, recovery: Recovery) -> CallToolResult:
    """What a call with bad arguments came to."""
    return _result(Failed(code, why), None, recovery, stuck=False)


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
    error: dict[str, Any] | None = None if trouble is None else {"code": code_of(trouble), "message": str(trouble)}
    if error is not None and stuck:
        error |= {"worker_may_delay_exit": True, "message": f"{trouble} {STUCK}"}
    if error is not None and left_out:
        error |= {"data_left_out": True}
    said = {"ok": trouble is None, "data": data, "error": error, "recovery": recovery.as_json()}
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=said, is_error=trouble is not None
    )
