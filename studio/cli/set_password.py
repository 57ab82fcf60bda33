"""`oz0 set-password`: a password to sign in with, for studios whose sign-in link cannot be opened on their machine."""

import json
from typing import Final

import click

from studio.cli import _this_studio, _told

SHORTEST: Final = 12


@click.command(
    "set-password",
    cls=_told.Told,
    short_help="Set a person's password.",
    exits={_told.Exit.DONE: "it is set", _told.Exit.FAILED: "it cannot be used, or there is no such person"},
    examples=["oz0 set-password", "oz0 set-password --user ada"],
)
@click.option("--user", default=None, help="Whose password; the first person's when left out.")
@click.password_option(help="Left out, it is asked for.")
@_told.json_option
def set_password(user: str | None, password: str, as_json: bool) -> None:
    """Set a person's password. Sessions that person has open end."""
    _this_studio.ready()
    from base import ids
    from tenants.operations import sign_in

    if len(password) < SHORTEST:
        raise click.ClickException(f"a password has at least {SHORTEST} characters")
    sign_in.first_tenant(ids.new())
    name = user or sign_in.FIRST_PERSON
    try:
        sign_in.set_password(username=name, password=password)
    except sign_in.NoSuchPerson as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps({"user": name}) if as_json else f"{name} can sign in with it")
