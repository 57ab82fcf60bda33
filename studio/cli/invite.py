"""`oz0 invite`: print an address by which somebody joins, once."""

import json
import secrets

import click

from studio.cli import _this_studio, _told

ROLES = ("viewer", "operator", "author", "admin")


@click.command(
    cls=_told.Told,
    short_help="Print an address by which somebody joins.",
    exits={_told.Exit.DONE: "the address is printed", _told.Exit.FAILED: "there is no studio here, or no such e-mail"},
    examples=["oz0 invite", "oz0 invite --role operator --email kim@example.com --days 1"],
)
@click.option("--role", type=click.Choice(ROLES), default="viewer", show_default=True, help="As what they join.")
@click.option("--email", default="", help="Their e-mail, by which a sign-in provider knows them. Nothing is sent.")
@click.option("--days", type=click.Choice(["1", "7", "30"]), default="7", show_default=True, help="How long it counts.")
@click.option("--address", default=None, help="Where people reach the studio; OZ0_URL when left out.")
@_told.json_option
def invite(role: str, email: str, days: str, address: str | None, as_json: bool) -> None:
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
    link = f"{(address or settings.OZ0_URL).rstrip('/')}/invitation/{token}/"
    click.echo(json.dumps({"invitation": link, "role": role, "days": int(days)}) if as_json else link)
