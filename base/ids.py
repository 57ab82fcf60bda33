"""Ids: a UUIDv7 in the database, a TypeID (`job_01k6…`) wherever a person or a program reads one."""

from datetime import datetime
from typing import Final
from uuid import UUID

from typeid import TypeID
from typeid.errors import TypeIDException
from uuid_utils import compat

JOB: Final = "job"
CALL: Final = "call"
ATTEMPT: Final = "att"
HOLD: Final = "hold"
TURN: Final = "turn"
NODE: Final = "node"
TENANT: Final = "ten"
CONNECTION: Final = "conn"
SWITCH: Final = "switch"
MEMBER: Final = "member"
INVITATION: Final = "inv"
TOKEN: Final = "tok"  # noqa: S105 - the word before an id
SECRET: Final = "secret"  # noqa: S105
CHANNEL: Final = "chan"
NOTICE: Final = "ntc"
LOGIN: Final = "login"
ROUTINE: Final = "routine"
HOOK: Final = "hook"
RUN: Final = "run"
DELIVERY: Final = "dlv"
PROJECT: Final = "proj"
BUDGET_KEY: Final = "bkey"
BUDGET_LIMIT: Final = "limit"
SPEND_EVENT: Final = "spend"
PROGRAM_RUN: Final = "srun"


class BadId(ValueError):
    """A text that is not the id it should be; the message says which kind was expected."""


def new() -> UUID:
    """A new time-ordered UUIDv7. For edges and model defaults, never for `rules`."""
    return compat.uuid7()


def show(prefix: str, value: UUID) -> str:
    """The TypeID of `value`: `show("job", …)` is `job_01k6f4n7qz…`, 26 characters after the underscore."""
    # its annotation asks for uuid_utils.UUID, but it reads only the bytes of either
    return f"{prefix}_{TypeID.from_uuid(suffix=value, prefix=prefix).suffix}"  # type: ignore[arg-type]


def parse(prefix: str, text: str) -> UUID:
    """The UUID of a TypeID with this prefix. Raises `BadId`."""
    try:
        parsed = TypeID.from_string(text)
    except (TypeIDException, ValueError) as error:
        raise BadId(f"{text[:80]!r} is not an id such as {prefix}_01k6f4n7qz…") from error
    if parsed.prefix != prefix:
        raise BadId(f"{text[:80]!r} is not the id of a {prefix}: it starts with {parsed.prefix!r}")
    return UUID(str(parsed.uuid))


def first_at(moment: datetime) -> UUID:
    """The least UUIDv7 of this millisecond: every id that was made later is greater."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return UUID(int=(milliseconds << 80) | (0x7 << 76) | (0x8 << 60))
