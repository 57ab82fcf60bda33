"""Telling the journal of calls and denials, apart from admission and settlement (RULES S6, S7)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from budgets.rules.acceptance import code_of
from budgets.rules.attribution import (
    ACKNOWLEDGED,
    Disposition,
    Event,
    Recorded,
    dispositions,
    together,
)
from budgets.sessions.calls import Failed, failed, lost
from budgets.sessions.credentials import NoCredentials
from budgets.sessions.owner import Lost, Owner


@dataclass(slots=True)
class Entry:
    """One event, of which check it is where it is of one, and what is known of it."""

    event: Event
    index: int | None = None
    what: Disposition = Disposition(Recorded.NOT_SUBMITTED)  # noqa: RUF009 - it never changes

    def as_json(self) -> dict[str, Any]:
        """What became of it, without the event."""
        told = {"call_id": self.event["call_id"], "status": self.what.recorded.value, "code": self.what.code or None}
        return told if self.index is None else {"index": self.index, **told}

    def to_keep(self) -> dict[str, Any]:
        """The very event, to be sent again as it is."""
        return {"event": dict(self.event)} if self.index is None else {"index": self.index, "event": dict(self.event)}


class Recording:
    """Events that one call tells of. `asked` is false where its caller wants none of them sent."""

    def __init__(self, entries: Iterable[Entry] = (), *, asked: bool = True) -> None:
        self.entries = list(entries)
        self.asked = asked
        self.refusal: Failed | NoCredentials | None = None  # of the key, not of the events

    @property
    def recorded(self) -> Recorded:
        """One word for all of it."""
        return together(one.what.recorded for one in self.entries)

    @property
    def acknowledged(self) -> bool:
        """Whether the journal has every event, for sure."""
        return all(one.what.recorded in ACKNOWLEDGED for one in self.entries)

    async def tell(self, owner: Owner) -> None:
        """Send them all in one request, at most twice. What becomes of it is in the entries. Raises `Stopped`."""
        if not self.asked:
            self._all(Recorded.SKIPPED)
        elif self.entries:
            body = {"events": [dict(one.event) for one in self.entries]}
            try:
                answer = await owner.ask("POST", "ingest", body=body, again=True, begins=self._begins)
            except NoCredentials as error:  # said before anything was taken in
                self.refusal = error
                self._all(Recorded.FAILED, "credentials_missing")
            except Lost as error:
                self._all(Recorded.UNKNOWN if error.doubt else Recorded.FAILED, lost(error).code)
            else:
                if answer.status == 202:
                    for one, found in zip(self.entries, dispositions(_events(self), answer.body), strict=True):
                        one.what = found
                else:
                    if answer.status in (401, 403):
                        self.refusal = failed(answer, "record")
                    self._all(Recorded.FAILED if answer.nothing_made else Recorded.UNKNOWN, code_of(answer.body))

    def stopped(self) -> None:
        """What was not sent will not be: since the call has ended, or since nobody wanted it sent."""
        for one in self.entries:
            if one.what.recorded is Recorded.NOT_SUBMITTED:
                one.what = Disposition(Recorded.STOPPED if self.asked else Recorded.SKIPPED)

    def failure(self) -> Failed | NoCredentials | None:
        """Why a call that was made for these events alone has not come to that; None when it has."""
        match self.recorded:
            case _ if self.acknowledged:
                return None
            case Recorded.FAILED if self.refusal is not None:
                return self.refusal
            case Recorded.UNKNOWN:
                return Failed("recording_unknown", "Nobody knows whether the journal has it: keep the event as it is.")
            case Recorded.REJECTED:
                return Failed("recording_rejected", "The journal has not taken every event in: recordings has why.")
            case _:
                return Failed("recording_failed", "Nothing of it was taken in: send the same event later.")

    def as_json(self) -> list[dict[str, Any]]:
        """What became of each."""
        return [one.as_json() for one in self.entries]

    def to_keep(self) -> list[dict[str, Any]]:
        """The events themselves."""
        return [one.to_keep() for one in self.entries]

    def _begins(self) -> None:
        self._all(Recorded.UNKNOWN)

    def _all(self, recorded: Recorded, code: str = "") -> None:
        for one in self.entries:
            one.what = Disposition(recorded, code)


def _events(recording: Recording) -> list[Event]:
    return [one.event for one in recording.entries]
