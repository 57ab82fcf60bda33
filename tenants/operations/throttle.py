"""Slowing down who guesses passwords, without ever locking anybody out of their account.

Tries are counted for a name from one place: the browser, where that person has signed in before, else the address.
So a stranger who guesses slows down nobody but those at their own address, and a browser that knows the person not
even then. All tries of an address are counted as well, against many names tried once each.

A try is written down before the password is looked at, so tries made at once are counted as well.
"""

import hashlib
import unicodedata
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import connection

from base import db
from tenants.models import SignInTry

WINDOW: Final = timedelta(minutes=5)
MOST_OF_NAME: Final = 5
MOST_OF_ADDRESS: Final = 50


def begin(*, name: str, address: str, browser: str) -> tuple[str, int]:
    """(the key of this name at this place, how many seconds to wait before a password may be tried: 0 is none).

    `browser` is what a browser shows in which this person has signed in before, or empty.
    """
    known = unicodedata.normalize("NFKC", name).casefold()
    of_name = _digest("name", known, browser or address)
    kept = [(of_name, MOST_OF_NAME)] + ([] if browser else [(_digest("address", address), MOST_OF_ADDRESS)])
    with db.durable() as now:
        _alone([key for key, _ in kept])
        SignInTry.objects.filter(at__lt=now - WINDOW).delete()
        wait = 0
        for key, most in kept:
            tries = list(SignInTry.objects.filter(key=key).order_by("-at").values_list("at", flat=True)[:most])
            if len(tries) >= most:
                wait = max(wait, int((tries[-1] + WINDOW - now).total_seconds()) + 1)
        if not wait:
            SignInTry.objects.bulk_create([SignInTry(key=key, at=now) for key, _ in kept])
    return of_name, wait


def succeeded(key: str) -> None:
    """The password was right: the tries of this name at this place are forgotten."""
    with db.durable():
        SignInTry.objects.filter(key=key).delete()


def _alone(keys: Sequence[str]) -> None:
    """Let tries of one key come one after the other until the end of this transaction."""
    with connection.cursor() as cursor:
        for key in sorted(keys):
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [int(key[:15], 16)])


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
