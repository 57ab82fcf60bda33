"""Words that programs send and read, as every address of the API spells them."""

from typing import Annotated, Any, Final

from ninja import Schema
from pydantic import AfterValidator, Field

MOST_ROWS: Final = 100
NEXT: Final = "What `next` of the answer before said."
AN_ID: Final = "[0-7][0-9a-hjkmnp-tv-z]{25}"
MOST_SEQ: Final = 2**53 - 1  # which every reader of JSON holds exactly


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it cannot hold NUL")
    return text


NO_NUL: Final = AfterValidator(_without_nul)
NO_NUL_PATTERN: Final = {"pattern": r"^[^\u0000]*$"}
Name = Annotated[str, Field(min_length=1, max_length=64, json_schema_extra=NO_NUL_PATTERN), NO_NUL]
Words = Annotated[str, Field(max_length=200, json_schema_extra=NO_NUL_PATTERN), NO_NUL]
Cursor = Annotated[str, Field(max_length=200, description=NEXT, json_schema_extra=NO_NUL_PATTERN), NO_NUL]
Limit = Annotated[int, Field(ge=1, le=MOST_ROWS, description="How many rows at most.")]


class Mistake(Schema):
    """One mistake in what was sent."""

    at: str
    detail: str


class Problem(Schema):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Mistake] | None = None


def cursor(prefix: str) -> Any:
    """A cursor that is an id; what is none is for the address to refuse, in words."""
    return Field("", description=NEXT, json_schema_extra={"pattern": f"^({prefix}_{AN_ID})?$"})


def answers(one: Any, *also: int, status: int = 200) -> dict[int, Any]:
    """What an address answers: `one`, and problem documents with the statuses that every address has, and `also`."""
    always = (400, 401, 403, 404, 405, 406, 422, 429, 500, 503)
    return {status: one, **dict.fromkeys(sorted({*always, *also}), Problem)}
