"""`oz0 secrets reseal`: seal everything under the present OZ0_SECRET_KEY, so that old ones are needed no more."""

import click

from studio.cli import _this_studio


@click.command()
def reseal() -> None:
    """Seal every secret of every workspace under the present OZ0_SECRET_KEY.

    Replace the key first, put the old one into OZ0_OLD_SECRET_KEYS and restart; after this, take the old one out.
    """
    _this_studio.ready()
    from tenants.operations import vault, workspaces
    from tenants.rules.who import Actor

    for tenant, slug in workspaces.every():
        try:
            number = vault.seal_again(tenant=tenant, actor=Actor("oz0", "oz0 secrets reseal"))
        except vault.NoSecret as error:
            raise click.ClickException(f"workspace {slug}: {error}. Nothing of it was changed.") from error
        click.echo(f"workspace {slug}: {number} sealed anew")
