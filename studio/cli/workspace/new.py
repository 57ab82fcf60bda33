"""`oz0 workspace new`: one more workspace, with somebody who is known here as its admin."""

import json

import click

from studio.cli import _this_studio, _told


@click.command(
    cls=_told.Told,
    short_help="Make a further workspace.",
    exits={
        _told.Exit.DONE: "it is there",
        _told.Exit.FAILED: "the name is taken or cannot be, or there is no such person",
    },
    examples=["oz0 workspace new billing", 'oz0 workspace new billing --name "Billing" --admin kim'],
)
@click.argument("slug")
@click.option("--name", default=None, help="What people read; the short name when left out.")
@click.option("--admin", default=None, help="Who is its admin; the first person when left out.")
@_told.json_option
def new(slug: str, name: str | None, admin: str | None, as_json: bool) -> None:
    """Make the workspace SLUG. Its admin finds it under Settings, You, and invites others."""
    _this_studio.ready()
    from base import ids
    from tenants.operations import sign_in, workspaces
    from tenants.rules.who import Actor

    sign_in.first_tenant(ids.new())
    who = admin or sign_in.FIRST_PERSON
    try:
        workspaces.make(
            new_id=ids.new(), slug=slug, name=name or slug, admin=who, actor=Actor("oz0", "oz0 workspace new")
        )
    except workspaces.BadWorkspace as error:
        raise click.ClickException(str(error)) from error
    told = f"workspace {slug} is there, with {who} as its admin"
    click.echo(json.dumps({"workspace": slug, "admin": who}) if as_json else told)
