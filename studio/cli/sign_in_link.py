"""`oz0 sign-in-link`: print a link that signs a person in by opening it, once, on this machine, for 10 minutes."""

import json
import secrets

import click

from studio.cli import _this_studio, _told


def make_link(address: str, username: str | None = None) -> str:
    """A one-time link below `address` (such as `http://127.0.0.1:8000`). Makes the first person when there is none.

    Django must be set up. Raises `NoSuchPerson`.
    """
    from base import ids
    from tenants.operations import sign_in

    sign_in.first_tenant(ids.new())
    token = secrets.token_urlsafe(32)
    sign_in.offer_link(token=token, username=username or sign_in.FIRST_PERSON)
    return f"{address.rstrip('/')}/sign-in/link/{token}/"


@click.command(
    "sign-in-link",
    cls=_told.Told,
    short_help="Print a link that signs a person in.",
    exits={_told.Exit.DONE: "the link is printed", _told.Exit.FAILED: "there is no studio here, or no such person"},
    examples=["oz0 sign-in-link", "OZ0_HOME=shelf/.oz0-dev oz0 sign-in-link"],
)
@click.option("--address", default=None, help="Where the studio listens; where `oz0 up` serves it when left out.")
@click.option("--user", default=None, help="Who is signed in; the first person when left out.")
@_told.json_option
def sign_in_link(address: str | None, user: str | None, as_json: bool) -> None:
    """Print a link that signs a person in, once, within 10 minutes, on this machine."""
    _this_studio.ready(wakes=False)
    from django.conf import settings

    from tenants.operations.sign_in import NoSuchPerson

    try:
        link = make_link(address or settings.OZ0_URL, user)
    except NoSuchPerson as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps({"link": link}) if as_json else link)
