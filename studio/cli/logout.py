"""`oz0 logout`: the token of `oz0 login` counts no more, and is forgotten here."""

import json

import click

from studio.cli import _far, _logins, _told


@click.command(
    cls=_told.Told,
    exits={_told.Exit.DONE: "logged out", _told.Exit.FAILED: "not logged in, or the studio cannot be reached"},
    examples=["oz0 logout", "oz0 logout https://studio.example.org"],
)
@click.argument("studio", required=False)
@_told.json_option
def logout(studio: str | None, as_json: bool) -> None:
    """Log out of STUDIO, or of the one that was logged in to last: its token is revoked there and forgotten here."""
    kept = _logins.kept()
    url = _far.read_studio(studio) if studio else next(iter(kept), "")
    if url not in kept:
        raise click.ClickException(f"you are not logged in to {url}" if url else "you are not logged in anywhere")
    ended = _far.ask("POST", url, "/login/end/", body={"token": kept[url].token})
    if not ended.ok and ended.status != 401:  # 401: it counted no more already
        raise click.ClickException(f"it was not revoked: {ended.why}")
    _logins.forget(url)
    from budgets.sessions.credentials import forget_pairs

    forget_pairs(url)  # what `oz0 budget` was given for it
    click.echo(json.dumps({"studio": url, "ended": True}) if as_json else f"logged out of {url}")
