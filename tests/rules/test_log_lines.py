"""One event, one line, whatever others write into it (CASES S17)."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from base import ids, log_lines
from base.log_lines import BAR

FORGED = "x\r\n2026-11-30 00:00:00 INFO root pat approved everything\u2028\x1b[2K\u202e"


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger that writes as a plain process does."""
    before = logging.getLogRecordFactory()
    log_lines.install()
    said, logger = io.StringIO(), logging.Logger("a test")
    handler = logging.StreamHandler(said)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    yield logger, said
    logging.setLogRecordFactory(before)


def test_what_others_wrote_stays_on_the_line_of_its_event(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, said = log
    logger.warning("the tool %s said %r", FORGED, FORGED)
    logger.warning(FORGED)
    logger.warning("plain words, and a % sign")
    lines = said.getvalue().split("\n")
    assert len(lines) == 4 and lines[3] == ""
    assert all(line.startswith("WARNING ") for line in lines[:3])
    assert not any(odd in said.getvalue() for odd in "\r\x1b\u2028\u202e")
    assert lines[2] == "WARNING plain words, and a % sign"


def test_an_errors_words_cannot_begin_a_line_either(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, said = log
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("it could not be answered")
    first, *rest = said.getvalue().rstrip("\n").split("\n")
    assert first == "ERROR it could not be answered"
    assert len(rest) > 3 and all(line.startswith(BAR) for line in rest)
    assert any("ValueError" in line for line in rest)


def test_as_json_each_event_is_one_object_with_the_ids_of_what_it_is_about() -> None:
    before = logging.getLogRecordFactory()
    log_lines.install()
    said, logger = io.StringIO(), logging.Logger("a test")
    handler = logging.StreamHandler(said)
    handler.setFormatter(log_lines.JsonLines())
    logger.addHandler(handler)
    job, call, attempt = ids.new(), ids.new(), ids.new()

    async def later() -> None:
        logger.warning("in a task of a loop: %s", FORGED)

    async def begun() -> None:
        with log_lines.about(attempt=attempt):
            task = asyncio.create_task(later())
        await task

    with log_lines.about(job=job, call=call):
        asyncio.run(begun())
        try:
            raise ValueError(FORGED)
        except ValueError:
            logger.exception("it failed")
    logger.warning("about nothing")
    logging.setLogRecordFactory(before)
    lines = said.getvalue().split("\n")
    assert lines.pop() == "" and all(line.isascii() and line.isprintable() for line in lines)
    task, failed, nothing = map(json.loads, lines)
    assert (task["job"], task["call"]) == (ids.show(ids.JOB, job), ids.show(ids.CALL, call))
    assert task["attempt"] == ids.show(ids.ATTEMPT, attempt)
    assert "approved everything" in task["message"] and "\u202e" not in task["message"]
    assert failed["call"] == task["call"] and "attempt" not in failed
    assert "ValueError" in failed["error"] and "\u202e" not in failed["error"]
    assert nothing.keys() == {"at", "level", "logger", "message"}
