"""`oz0 invite`: print an address by which somebody joins, once."""

import secrets

import click

from studio.cli import _this_studio

ROLES = ("viewer", "operator", "author", "admin")


@click.command()
@click.option("--role", type=click.Choice(ROLES), default="viewer", show_default=True, help="As what they join.")
@click.option("--email", default="", help="Their e-mail, by which a sign-in provider knows them. Nothing is sent.")
@click.option("--days", type=click.Choice(["1", "7", "30"]), default="7", show_default=True, help="How long it counts.")
@click.option("--address", default=None, help="Where people reach the studio; OZ0_URL when left out.")
def invite(role: str, email: str, days: str, address: str | None) -> None:
    """Invite somebody to the first workspace: whoever opens the printed address joins it, once."""
    _this_studio.ready()
    from datetime import timedelta

    from django.conf import settings

    from tenants.models import Role
    from tenants.operations import invitations

    tenant, admin = _this_studio.me()
    token = secrets.token_urlsafe(32)
    try:
        invitations.invite(
            tenant=tenant,
            token=token,
            role=Role(role),
            email=email,
            good_for=timedelta(days=int(days)),
            actor=_this_studio.actor(admin, "oz0 invite"),
        )
    except invitations.BadInvitation as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{(address or settings.OZ0_URL).rstrip('/')}/invitation/{token}/")
