"""What a node's pulse does when the database says that the node was lost."""

from typing import Any
from uuid import UUID

import pytest

from base import ids
from jobs.rules.reasons import Reason, sentence
from jobs.tasks.pulse import Pulse


class OneAttempt:
    """A host with one open attempt, and a note of what its node was told."""

    def __init__(self) -> None:
        self.node, self.node_id, self.attempt = self, ids.new(), ids.new()
        self.told: list[tuple[UUID, str]] = []
        self.registered = 0

    def open_attempts(self) -> set[UUID]:
        return {self.attempt}

    def stop(self, attempt_id: UUID, why: str) -> None:
        self.told.append((attempt_id, why))

    def register(self) -> None:
        self.registered += 1


@pytest.mark.rule("U4")
def test_a_node_that_was_declared_lost_stops_its_attempts_as_lost_ones_and_registers_anew() -> None:
    host: Any = OneAttempt()
    Pulse(host)._start_over()
    assert host.told == [(host.attempt, Reason.NODE_LOST)]
    assert host.registered == 1
    assert "limit" not in sentence(host.told[0][1])
