"""What a program tells of a call afterwards, and whether it is taken (RULES S6, S7)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from base.canonical import digest
from budgets.rules.checks import Used
from budgets.rules.identity import denial_call_id
from budgets.rules.words import (
    LONGEST_NAME,
    LONGEST_WORD,
    MODALITIES,
    MODALITY,
    MOST_TAGS,
    DuplicateBy,
    EventStatus,
    Rejection,
)

MOST_KEYS: Final = 100  # different tags of one project
MOST_VALUES: Final = 1_000  # different values of one tag


@dataclass(frozen=True, slots=True)
class Told:
    """One event as it was sent."""

    call_id: str
    instance_id: str
    attempt_index: int
    timestamp: datetime
    status: EventStatus
    model: str
    provider: str
    modality: str = MODALITY
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    agent_run_id: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> tuple[str, int]:
        """By what it is the same event."""
        return self.call_id, self.attempt_index

    @property
    def legacy_name(self) -> tuple[datetime, str]:
        """By what it may be the same event as another: its moment, and the program that tells of it."""
        return self.timestamp, self.instance_id

    @property
    def used(self) -> Used:
        """What its call has used."""
        tokens = (self.input_tokens, self.output_tokens, self.cached_input_tokens)
        return Used(self.call_id, self.model, self.provider, *tokens, modality=self.modality)

    @property
    def digest(self) -> str:
        """Of all that was told; a moment counts by when it is, in whatever zone it is written."""
        said: dict[str, Any] = {
            "timestamp": self.timestamp.astimezone(UTC).isoformat(),
            "instance_id": self.instance_id,
            "attempt_index": self.attempt_index,
            "status": self.status.value,
            "agent_run_id": self.agent_run_id,
            "tags": dict(self.tags),
            **self.used.as_json(),
        }
        return digest(said)


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one event: taken, rejected, or a duplicate; of the first `same` says that nothing differs."""

    told: Told
    rejection: Rejection | None = None
    by: DuplicateBy | None = None
    same: bool | None = None


@dataclass(frozen=True, slots=True)
class Denial:
    """A denied item, as the journal has it."""

    index: int
    checked_at: datetime
    asked: Mapping[str, Any]


def why_not(told: Told) -> Rejection | None:
    """Why an event is not taken, by itself."""
    if len(told.tags) > MOST_TAGS or any(not _is_tag(key, value) for key, value in told.tags.items()):
        return Rejection.INVALID_TAGS
    return None if told.modality in MODALITIES else Rejection.UNSUPPORTED_MODALITY


def is_of(told: Told, operation: UUID, denials: Mapping[str, Denial]) -> bool:
    """Whether this tells of a denial exactly as its operation's journal has it. `denials` are by their call ids.

    No provider was called for it, so it has used nothing.
    """
    denial = denials.get(told.call_id)
    if denial is None or told.attempt_index != 0 or told.timestamp != denial.checked_at:
        return False
    if told.input_tokens or told.output_tokens or told.cached_input_tokens:
        return False
    said = {
        "model": told.model,
        "provider": told.provider,
        "modality": told.modality,
        "agent_run_id": told.agent_run_id,
        "tags": dict(told.tags),
    }
    return said == {name: denial.asked[name] for name in said} and told.call_id == str(
        denial_call_id(operation, denial.index)
    )


def _is_tag(key: str, value: str) -> bool:
    return 1 <= len(key) <= LONGEST_WORD and len(value) <= LONGEST_NAME
