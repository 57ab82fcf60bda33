"""What is asked for, and that two askings are the same one (RULES S2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from base.canonical import digest
from budgets.rules.words import MODALITY


@dataclass(frozen=True, slots=True)
class Check:
    """One call that a program wants to make, as far as it can tell before."""

    model: str
    provider: str
    estimated_input_tokens: int
    estimated_output_tokens: int | None = None
    modality: str = MODALITY
    fallback_models: tuple[str, ...] = ()
    agent_run_id: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    uncounted_calls: int = 0
    uncounted_tokens: int = 0

    def as_json(self) -> dict[str, Any]:
        """The whole of it, with what was left out as it is then taken."""
        return {
            "model": self.model,
            "provider": self.provider,
            "estimated_input_tokens": self.estimated_input_tokens,
            "estimated_output_tokens": self.estimated_output_tokens,
            "modality": self.modality,
            "fallback_models": list(self.fallback_models),
            "agent_run_id": self.agent_run_id,
            "tags": dict(self.tags),
            "uncounted_calls": self.uncounted_calls,
            "uncounted_tokens": self.uncounted_tokens,
        }


@dataclass(frozen=True, slots=True)
class Used:
    """What a call has used in the end, by which it is confirmed."""

    call_id: str
    model: str
    provider: str
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = 0
    modality: str = MODALITY

    def as_json(self) -> dict[str, Any]:
        """The whole of it."""
        return {
            "call_id": self.call_id,
            "model": self.model,
            "provider": self.provider,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_input_tokens": self.cached_input_tokens,
            "modality": self.modality,
        }


def digest_of(checks: Sequence[Check]) -> str:
    """The digest of checks in their order. Names may stand in any order and defaults may be left out.

    A number is compared by its value and a text by its code points: composed and decomposed letters differ.
    """
    return digest([check.as_json() for check in checks])
