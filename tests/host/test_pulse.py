"""What a node's pulse does when the database says that the node was lost."""

from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError

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


def test_a_step_of_the_pulse_that_fails_by_an_error_of_ours_leaves_out_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host: Any = OneAttempt()
    done: list[str] = []

    def fails() -> None:
        raise ZeroDivisionError

    Pulse(host)._do(fails, lambda: done.append("claimed"))
    assert done == ["claimed"]
    assert "left out a step" in caplog.text


def test_without_the_database_the_pulse_tries_no_further_step() -> None:
    host: Any = OneAttempt()
    done: list[str] = []

    def away() -> None:
        raise OperationalError

    Pulse(host)._do(away, lambda: done.append("claimed"))
    assert done == []
