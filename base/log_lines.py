"""One event, one line: what others wrote cannot begin a line of the log that looks like ours (CASES S17).

A record's message has its control, hidden and reordering characters written as their codes, newlines too. The lines of
a traceback, which quote messages, begin with a bar. It holds for every logger and whatever prints them.
"""

import logging
import traceback
from typing import Any, Final

from base.visible import visible

BAR: Final = "  | "
LONGEST: Final = 20_000  # characters of one message


class OneLine(logging.LogRecord):
    """A record that says what it has to say on one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if isinstance(self.exc_info, tuple) and self.exc_info[0] is not None:
            told = "".join(traceback.format_exception(*self.exc_info))
            self.exc_text = "\n".join(f"{BAR}{visible(line, LONGEST)}" for line in told.splitlines())

    def getMessage(self) -> str:
        """The message with its arguments, on one line."""
        said = super().getMessage()
        return said if said.isascii() and said.isprintable() else visible(said, LONGEST)


def install() -> None:
    """Have every record of this process made so."""
    logging.setLogRecordFactory(OneLine)
