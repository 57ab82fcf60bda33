"""`oz0 set-password`: a password to sign in with, for studios whose sign-in link cannot be opened on their machine."""

from typing import Final

import click

from studio.cli import _this_studio

SHORTEST: Final = 12


@click.command("set-password")
@click.option("--user", default=None, help="Whose password; the first person's when left out.")
@click.password_option(help="Left out, it is asked for.")
def set_password(user: str | None, password: str) -> None:
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
    click.echo(f"{name} can sign in with it")
