"""`oz0 secrets reseal`: seal everything under the present OZ0_SECRET_KEY, so that old ones are needed no more."""

import json

import click

from studio.cli import _this_studio, _told


@click.command(
    cls=_told.Told,
    short_help="Seal everything under the present key.",
    exits={_told.Exit.DONE: "all is sealed anew", _told.Exit.FAILED: "a secret does not open, and which is said"},
    examples=["oz0 secrets reseal", "OZ0_OLD_SECRET_KEYS=the-old-one oz0 secrets reseal --json"],
)
@_told.json_option
def reseal(as_json: bool) -> None:
    """Seal every secret of every workspace under the present OZ0_SECRET_KEY.

    Replace the key first, put the old one into OZ0_OLD_SECRET_KEYS and restart; after this, take the old one out.
    """
    _this_studio.ready()
    from tenants.operations import vault, workspaces
    from tenants.rules.who import Actor

    sealed = {}
    for tenant, slug in workspaces.every():
        try:
            sealed[slug] = vault.seal_again(tenant=tenant, actor=Actor("oz0", "oz0 secrets reseal"))
        except vault.NoSecret as error:
            raise click.ClickException(f"workspace {slug}: {error}. Nothing of it was changed.") from error
        if not as_json:
            click.echo(f"workspace {slug}: {sealed[slug]} sealed anew")
    if as_json:
        click.echo(json.dumps({"sealed": sealed}))
