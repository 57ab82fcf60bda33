"""People with a browser, for tests of pages."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.test import Client

from base import ids
from tenants.models import User
from tests.builders import World


def visitor(world: World, person: int | None = None, *, strict: bool = False) -> Client:
    """A signed-in client; the world's own person when none is named. `strict` wants CSRF tokens."""
    client = Client(enforce_csrf_checks=strict)
    client.force_login(User.objects.get(pk=person or world.person))
    return client


def text_of(response: Any) -> str:
    """The page's HTML."""
    assert isinstance(response, HttpResponse)
    return response.content.decode()


def plain(html: str) -> str:
    """The words of a page."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html)))


def job_url(job: UUID, more: str = "") -> str:
    """The address of a job's trace."""
    return f"/jobs/{ids.show(ids.JOB, job)}/{more}"


def hold_url(hold: UUID) -> str:
    """The address of a question."""
    return f"/approvals/{ids.show(ids.HOLD, hold)}/"


def shown_digest_of(client: Client, hold: UUID) -> str:
    """The digest on the card, as the form sends it."""
    html = text_of(client.get(hold_url(hold)))
    return html.split('name="shown" value="', 1)[1].split('"', 1)[0]


def answer(client: Client, hold: UUID, **fields: Any) -> Any:
    """Send the card's form."""
    return client.post(hold_url(hold), {"shown": shown_digest_of(client, hold), **fields})


type Ahead = Callable[..., None]
