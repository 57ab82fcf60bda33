"""A studio somewhere else, spoken to over HTTP: one request at a time, whole answers, and errors in a sentence."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final

import click

LIMIT: Final = 30.0  # seconds for one request
MOST: Final = 8 * 1024 * 1024  # bytes of an answer


@dataclass(frozen=True, slots=True)
class Said:
    """An answer. `body` is its JSON, or empty where it is none."""

    status: int
    body: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether it did what was asked."""
        return 200 <= self.status < 300

    @property
    def why(self) -> str:
        """What it says went wrong, each mistake in a line."""
        told = str(self.body.get("detail") or f"the studio answered {self.status}")
        lines = [
            f"  {one.get('at')}: {one.get('detail')}" for one in self.body.get("errors", ()) if isinstance(one, dict)
        ]
        return "\n".join([told, *lines])


def read_studio(url: str) -> str:
    """The address of a studio, as it was typed, in its one spelling. Raises `ClickException`."""
    from base.addresses import Refused, literal, read_url

    try:
        found = read_url(url if "://" in url else f"https://{url}")
    except Refused as error:
        raise click.ClickException(f"{url!r} is no address of a studio: {error}") from error
    address = literal(found.host)
    here = found.host == "localhost" or (address is not None and address.is_loopback)
    if found.scheme != "https" and not here:
        raise click.ClickException(
            f"{found.origin} is not https: a token would go there for everybody to read\n"
            "  fix: use the https address, or reach it through a tunnel at http://127.0.0.1:PORT"
        )
    if found.target != "/":
        raise click.ClickException(f"{url!r} is no address of a studio: write {found.origin}, with nothing behind it")
    return found.origin


def ask(
    method: str, studio: str, path: str, *, token: str = "", body: object = None, headers: dict[str, str] | None = None
) -> Said:
    """Send one request. Raises `ClickException` where no answer comes."""
    from base import outbound
    from base.addresses import Refused

    sent = b"" if body is None else json.dumps(body).encode()
    every = {"Accept": "application/json, application/problem+json", **(headers or {})}
    if body is not None:
        every["Content-Type"] = "application/json"
    if token:
        every["Authorization"] = f"Bearer {token}"
    try:
        return asyncio.run(_ask(method, studio, path, every, sent))
    except (outbound.Failed, outbound.TooLong, Refused) as error:
        raise click.ClickException(f"{studio} cannot be asked: {error}") from error
    except TimeoutError as error:
        raise click.ClickException(f"{studio} did not answer within {LIMIT:g} s") from error


async def _ask(method: str, studio: str, path: str, headers: dict[str, str], body: bytes) -> Said:
    from base import outbound
    from base.addresses import read_url

    client = outbound.Client(allowed=[read_url(studio).place])  # the one that its user has named
    try:
        async with asyncio.timeout(LIMIT):
            async with client.ask(method, f"{studio}{path}", headers=headers, body=body) as reply:
                return Said(reply.status, _read(await reply.body(MOST)))
    finally:
        await client.close()


def _read(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
