"""The one place where arguments and results of sensitive tools are kept from who may not see them (RULES A14).

Every page and answer for programs that shows such a value asks it for the value: `Veil.over(role)`.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from catalog.models import Tool
from jobs.models import Call
from jobs.queries.story import Says
from jobs.rules.seeing import HIDDEN, why_not_see
from jobs.rules.states import CALL_FINAL
from jobs.rules.why import sentence

if TYPE_CHECKING:
    from jobs.queries.call_page import AttemptRow, HoldRow, Value


@dataclass(frozen=True, slots=True)
class Veil:
    """What somebody does not see: arguments and results of calls of these tools."""

    tools: frozenset[str]

    @classmethod
    def over(cls, role: str) -> "Veil":
        """What this role does not see. A tool once marked sensitive stays so for old calls. Demands an open read."""
        if why_not_see(role, sensitive=True) is None:
            return cls(frozenset())
        return cls(frozenset(Tool.objects.filter(sensitive=True).values_list("slug", flat=True)))

    def hides(self, tool: str) -> bool:
        """Whether calls of this tool are shown without arguments and results."""
        return tool in self.tools

    def value(self, tool: str, value: "Value") -> "Value":
        """An argument or result as it may be seen."""
        return replace(value, value=HIDDEN, shown=True, size=0) if self.hides(tool) else value

    def text(self, tool: str, text: str) -> str:
        """A text of a result, or one that may quote it or the arguments."""
        return HIDDEN if text and self.hides(tool) else text

    def any(self, tool: str, value: Any) -> Any:
        """The same for a value of JSON."""
        return HIDDEN if value is not None and self.hides(tool) else value

    def attempt(self, tool: str, row: "AttemptRow") -> "AttemptRow":
        """An attempt, without what its server said."""
        if not self.hides(tool):
            return row
        return replace(row, evidence=self.text(tool, row.evidence), late=self.any(tool, row.late))

    def hold(self, tool: str, row: "HoldRow") -> "HoldRow":
        """A question, without the result that a person gave or the arguments that they edited."""
        return replace(row, note=self.text(tool, row.note), changes=()) if self.hides(tool) else row

    def says(self, call: Call, says: Says) -> Says:
        """A call's sentence; the end of a hidden one is told by its reason alone, since its detail may quote it."""
        if not self.hides(call.tool_slug) or call.state not in CALL_FINAL:
            return says
        return Says(sentence(call.reason))
