"""How a server took what no client should send, and what a studio adds to a call: what its author is told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from catalog.rules.findings import Finding, Severity
from catalog.rules.manifest import MANIFEST

BORNE: Final = "server.frames"
META: Final = "server.meta"
NAMED: Final = 5  # frames that a finding names


@dataclass(frozen=True, slots=True)
class Borne:
    """How a server took one frame. `why` says what went wrong after it, and is empty when nothing did."""

    frame: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Bearing:
    """How one tool's server took every frame.

    `control` says what showed that a server which ends is seen to; without it nothing was measured, and `trouble` says
    why. `meta` is what it answers to a request with what a studio adds in `_meta`, where it answers otherwise without.
    """

    tool: str
    borne: tuple[Borne, ...]
    control: str = ""
    trouble: str = ""
    meta: str = ""

    @property
    def failed(self) -> tuple[Borne, ...]:
        """The frames that it did not bear."""
        return tuple(one for one in self.borne if one.why)

    def as_json(self) -> dict[str, Any]:
        """The same for a program."""
        return {
            "tool": self.tool,
            "sent": len(self.borne),
            "failed": len(self.failed),
            "control": self.control,
            "trouble": self.trouble,
            "meta": self.meta,
            "frames": [{"frame": one.frame, "passed": not one.why, "why": one.why} for one in self.borne],
        }


def findings(bearings: Sequence[Bearing]) -> Iterator[Finding]:
    """What is to be mended, at the tool."""
    for one in bearings:
        if one.meta:
            what = (
                "it answers a call otherwise when its _meta has names that it does not know, and every call of a "
                f"studio has (oz0/idempotency_key, progressToken): {one.meta}"
            )
            fix = "let names in _meta pass that the server does not know, as MCP asks"
            yield Finding(Severity.ERROR, META, MANIFEST, 0, one.tool, what, fix)
        if one.failed:
            names = ", ".join(failed.frame for failed in one.failed[:NAMED])
            more = f" and {len(one.failed) - NAMED} more" if len(one.failed) > NAMED else ""
            what = f"its server does not bear {len(one.failed)} of {len(one.borne)} malformed lines: {names}{more}"
            fix = "read line by line, and answer one that cannot be read with a JSON-RPC error instead of ending"
            yield Finding(Severity.WARNING, BORNE, MANIFEST, 0, one.tool, what, fix)
        elif one.trouble:
            what = f"malformed lines were not all tried: {one.trouble}"
            yield Finding(Severity.WARNING, BORNE, MANIFEST, 0, one.tool, what, "mend what it says and run this again")


def told(bearings: Sequence[Bearing]) -> Iterator[str]:
    """For a person: how many lines each server bore, and each one that it did not."""
    for one in bearings:
        if one.borne:
            yield f"{one.tool}: {len(one.borne) - len(one.failed)} of {len(one.borne)} malformed lines borne"
        for failed in one.failed:
            yield f"  FAILED  {failed.frame}: {failed.why}"
