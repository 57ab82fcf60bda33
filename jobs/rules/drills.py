"""What a drill finds: one verdict for each function and fault, and the control that shows it could have found it.

A fault is proven harmless only when its control showed that harm would have been seen (RULES D2). What does not apply
to a function is told as that and counts for nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Final, Self


class Verdict(StrEnum):
    """How a fault went."""

    PROVEN = "proven"
    FAILED = "FAILED"
    NOT_APPLICABLE = "not applicable"
    NOT_MEASURED = "not measured"


class Fault(StrEnum):
    """What is done to a function. The words never change their meaning."""

    WRITES_NOTHING = "writes-nothing"
    REPEATED = "repeated"
    REPEATED_LATER = "repeated-later"
    REPEATED_AFTER_RESTART = "repeated-after-restart"
    REPEATED_AFTER_A_DAY = "repeated-after-a-day"
    ANOTHER_CALL = "another-call"
    AT_ONCE = "at-once"
    REPLY_DROPPED = "reply-dropped"
    KILLED_BEFORE = "killed-before-dispatch"
    KILLED_MID_WAY = "killed-mid-way"
    KILLED_AFTER = "killed-after-effect"
    EOF_MID_WAY = "eof-mid-way"
    TERM_MID_WAY = "sigterm-mid-way"
    CANCELLED = "cancelled"
    CANCEL_ACKNOWLEDGED = "cancel-acknowledged"
    CANCELLED_LATE = "cancelled-late"
    BUSY_ASKED_ONCE = "busy-asked-once"
    BUSY_NOT_KEPT = "busy-not-kept"
    EOF = "eof"
    TERM = "sigterm"


SAYS: Final[dict[Fault, str]] = {
    Fault.WRITES_NOTHING: "a function that says it only reads changes nothing",
    Fault.REPEATED: "the same call under the same key acts once and gets the same answer",
    Fault.REPEATED_LATER: "so it does some seconds later",
    Fault.REPEATED_AFTER_RESTART: "so it does when the server was restarted in between",
    Fault.REPEATED_AFTER_A_DAY: "so it does 24 hours later",
    Fault.ANOTHER_CALL: "another call under a known key is not answered from that key's record",
    Fault.AT_ONCE: "four calls under one key at once act once",
    Fault.REPLY_DROPPED: "a call whose reply was lost is made again and acts once",
    Fault.KILLED_BEFORE: "a server killed before it got the call: made again, it acts once",
    Fault.KILLED_MID_WAY: "a server killed while the call ran: made again, it acts once",
    Fault.KILLED_AFTER: "a server killed between effect and reply: made again, it acts once",
    Fault.EOF_MID_WAY: "a server whose input ended while the call ran: made again, it acts once",
    Fault.TERM_MID_WAY: "a server that got SIGTERM while the call ran: made again, it acts once",
    Fault.CANCELLED: "a call that is cancelled before its effect does nothing more",
    Fault.CANCEL_ACKNOWLEDGED: "once a server says that a cancelled call has ended, nothing of it lands",
    Fault.CANCELLED_LATE: "a call that is cancelled after its effect and run again acts once",
    Fault.BUSY_ASKED_ONCE: "a busy service is asked once for each attempt",
    Fault.BUSY_NOT_KEPT: "a busy answer is not kept under the key",
    Fault.EOF: "the server ends when its input ends",
    Fault.TERM: "the server ends on SIGTERM",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault put to one function (to the whole tool when `function` is empty), and what was seen.

    `control` says what showed that harm would have been seen; only with it can a fault be proven.
    """

    tool: str
    function: str
    fault: Fault
    verdict: Verdict
    said: str
    control: str = ""
    fix: str = ""

    def __post_init__(self) -> None:
        if self.verdict is Verdict.PROVEN and not self.control:
            raise ValueError(f"{self.label}: {self.fault} cannot be proven without a control")

    @property
    def label(self) -> str:
        """`tool.function`, or the tool."""
        return f"{self.tool}.{self.function}" if self.function else self.tool

    def as_json(self) -> dict[str, Any]:
        """The same for a program."""
        return {
            "tool": self.tool,
            "function": self.function,
            "fault": str(self.fault),
            "verdict": str(self.verdict),
            "said": self.said,
            "control": self.control,
            "fix": self.fix,
        }


class Exit(IntEnum):
    """How a drill ends; 2 is a wrong call of the command."""

    CLEAN = 0
    FAILED = 1
    USAGE = 2
    NOT_MEASURED = 3


@dataclass(frozen=True, slots=True)
class Drilled:
    """A whole drill."""

    plugin: str
    findings: tuple[Finding, ...]

    def count(self, verdict: Verdict) -> int:
        """How many faults ended so."""
        return sum(finding.verdict is verdict for finding in self.findings)

    @property
    def exit(self) -> Exit:
        """A failure decides first; then what could not be measured, and a drill that proved nothing at all."""
        if self.count(Verdict.FAILED):
            return Exit.FAILED
        if self.count(Verdict.NOT_MEASURED) or not self.count(Verdict.PROVEN):
            return Exit.NOT_MEASURED
        return Exit.CLEAN

    def as_json(self) -> dict[str, Any]:
        """One object."""
        return {
            "plugin": self.plugin,
            **{str(verdict).lower().replace(" ", "_"): self.count(verdict) for verdict in Verdict},
            "exit": int(self.exit),
            "findings": [finding.as_json() for finding in self.findings],
        }

    @classmethod
    def of(cls, plugin: str, findings: Iterable[Finding]) -> Self:
        """Findings in the order of tools, functions and faults."""
        order = list(Fault)
        return cls(plugin, tuple(sorted(findings, key=lambda one: (one.tool, one.function, order.index(one.fault)))))
