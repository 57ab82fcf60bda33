"""The words of the spend journal, as rows keep them and as its API says them."""

from datetime import timedelta
from enum import StrEnum
from typing import Final, Literal, get_args

AUTHORITY: Final = timedelta(seconds=300)  # for how long a reservation lets its caller spend (RULES S4)
DOUBT: Final = timedelta(hours=24)  # for how long an amount that nobody confirms is counted (RULES S10)
LIFETIME: Final = timedelta(hours=24)  # of an operation, from its id's own time (RULES S2)
RECEIPT: Final = timedelta(seconds=3_600)  # for how long a confirmation can be sent again (RULES S8)
MOST_CHECKS: Final = 32  # of one operation (RULES S1)
MOST_TOKENS: Final = 10**12
MOST_FALLBACKS: Final = 8
MOST_TAGS: Final = 10
LONGEST_MODEL: Final = 2_048  # characters
LONGEST_WORD: Final = 64  # of a provider, of a tag's name
LONGEST_NAME: Final = 256  # that a program gives: of a call, an instance, a run; also a tag's value
PLACES: Final = 12  # decimal places of an amount in US dollars
DIGITS: Final = 30


class Period(StrEnum):
    """What a limit is counted over. Hours are UTC's; days and months begin at midnight of the project's time zone."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class LimitMode(StrEnum):
    """What becomes of a check that does not fit into a limit: it is only told, or it is denied."""

    ALERT_ONLY = "alert_only"
    HARD_DENY = "hard_deny"


class KeyScope(StrEnum):
    """What a project's key may: everything, or look things up."""

    FULL = "full"
    READ_ONLY = "read_only"


class OperationState(StrEnum):
    """Where an operation stands. Only the one that claimed it executes it, and nothing ever resumes it."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"


class ItemState(StrEnum):
    """What is known of one check of an operation (RULES S3)."""

    COMPLETED = "completed"
    FAILED = "failed"
    UNATTEMPTED = "unattempted"
    UNKNOWN = "unknown"


class ItemError(StrEnum):
    """Why an item has no result."""

    CHECK_FAILED = "check_failed"
    RESERVATION_UNKNOWN = "reservation_unknown"


class ReservationState(StrEnum):
    """What becomes of a reserved amount. Live ones and those in doubt are counted, and so is what was confirmed."""

    LIVE = "live"
    IN_DOUBT = "in_doubt"
    CONFIRMED = "confirmed"
    RELEASED = "released"
    LAPSED = "lapsed"
    EXPIRED = "expired"


OPEN: Final = frozenset({ReservationState.LIVE, ReservationState.IN_DOUBT})


class Unconfirmed(StrEnum):
    """What a project makes of an amount whose authority ended and that nobody has confirmed.

    Its request may have gone out, so it is counted as in doubt; a project may say that such amounts lapse instead.
    """

    IN_DOUBT = "in_doubt"
    LAPSE = "lapse"


class EventStatus(StrEnum):
    """How a call ended that a program tells of."""

    SUCCESS = "success"
    ERROR = "error"
    BUDGET_DENIED = "budget_denied"


class Rejection(StrEnum):
    """Why an event is not taken."""

    UNKNOWN_MODEL = "unknown_model"
    INVALID_TAGS = "invalid_tags"
    TAG_CARDINALITY_EXCEEDED = "tag_cardinality_exceeded"
    UNSUPPORTED_MODALITY = "unsupported_modality"
    NOT_AS_ADMITTED = "not_as_admitted"


class DuplicateBy(StrEnum):
    """By what an event is known already. The second says little: another call may have the same."""

    CALL_ID = "call_id"
    LEGACY_KEY = "legacy_key"


Modality = Literal["text", "image", "audio", "video", "embedding"]
MODALITIES: Final[tuple[str, ...]] = get_args(Modality)
MODALITY: Final = "text"
