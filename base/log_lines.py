"""One event, one line: what others wrote cannot begin a line of the log that looks like ours (CASES S17).

A record's message has its control, hidden and reordering characters written as their codes, newlines too. The lines of
a traceback, which quote messages, begin with a bar. It holds for every logger and whatever prints them.

With `OZ0_LOG=json` each event is one JSON object, with the ids of the work it is about (`about`).
"""

import json
import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from base import ids
from base.visible import visible

BAR: Final = "  | "
LONGEST: Final = 20_000  # characters of one message
WAYS: Final = ("text", "json")
ABOUT: Final = {"job": ids.JOB, "call": ids.CALL, "attempt": ids.ATTEMPT}

_about: ContextVar[Mapping[str, str]] = ContextVar("oz0_about", default={})  # noqa: B039 - read, never changed


@contextmanager
def about(**rows: UUID) -> Iterator[None]:
    """What is logged inside, by whatever this leads to, is about this job, call or attempt.

    It goes along into tasks of a loop that are begun inside.
    """
    told = {name: ids.show(ABOUT[name], row) for name, row in rows.items()}
    token = _about.set({**_about.get(), **told})
    try:
        yield
    finally:
        _about.reset(token)


class OneLine(logging.LogRecord):
    """A record that says what it has to say on one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.oz0_about = _about.get()
        if isinstance(self.exc_info, tuple) and self.exc_info[0] is not None:
            told = "".join(traceback.format_exception(*self.exc_info))
            self.exc_text = "\n".join(f"{BAR}{visible(line, LONGEST)}" for line in told.splitlines())

    def getMessage(self) -> str:
        """The message with its arguments, on one line."""
        said = super().getMessage()
        return said if said.isascii() and said.isprintable() else visible(said, LONGEST)


class JsonLines(logging.Formatter):
    """Writes each record as one JSON object in ASCII, the same keys every time and the ids where there are any."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        told = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "oz0_about", {}),
        }
        if record.exc_text:
            told["error"] = record.exc_text.replace(f"\n{BAR}", "\n").removeprefix(BAR)
        return json.dumps(told)


def install() -> None:
    """Have every record of this process made so."""
    logging.setLogRecordFactory(OneLine)


def settings_of(way: str) -> dict[str, Any]:
    """What Django is to make of logging: for `text` what it does by itself, for `json` one handler for everything."""
    foreign = {"django.security.DisallowedHost": {"level": "CRITICAL"}}  # told to who asked; anybody may ask
    if way == "text":
        return {"version": 1, "disable_existing_loggers": False, "loggers": foreign}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonLines}},
        "handlers": {"lines": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["lines"], "level": "INFO"},
        "loggers": {"django": {"handlers": [], "propagate": True}} | foreign,
    }
