"""`oz0 login`: let a studio's person allow this account a token, on a page of theirs."""

import hashlib
import json
import platform
import secrets
import time
import webbrowser
from typing import Final

import click

from studio.cli import _far, _logins, _told

PATIENCE: Final = 600  # seconds, as long as the page is good for
SLOWEST: Final = 10.0  # seconds between two looks, whatever the studio asks for


@click.command(
    cls=_told.Told,
    exits={
        _told.Exit.DONE: "logged in",
        _told.Exit.FAILED: "refused, expired, or the studio cannot be reached",
    },
    examples=["oz0 login https://studio.example.org", "oz0 login http://127.0.0.1:8000 --no-browser"],
)
@click.argument("studio")
@click.option("--no-browser", is_flag=True, help="Open no browser: the address is printed in any case.")
@_told.json_option
def login(studio: str, no_browser: bool, as_json: bool) -> None:
    """Log in to STUDIO, an address: its page asks you to allow this account a token.

    The token counts as you for reading, for starting jobs and for `oz0 budget`, and never answers a
    question. It is kept in your folder for settings, for you alone to read, until it expires or `oz0 logout`.
    """
    url = _far.read_studio(studio)
    verifier = secrets.token_urlsafe(32)
    machine = platform.node() or "this machine"
    challenge = hashlib.sha256(verifier.encode()).hexdigest()
    asked = _far.ask("POST", url, "/login/", body={"challenge": challenge, "machine": machine})
    if not asked.ok or not {"login", "code", "url"} <= set(asked.body):
        raise click.ClickException(asked.why if not asked.ok else f"{url} is no oz0 studio")
    page = f"{url}/login/{asked.body['login']}/"  # where it was asked, whatever the studio takes itself for
    click.echo(f"Open {page}\nand allow it there if it shows this code: {asked.body['code']}", err=True)
    if not no_browser:
        webbrowser.open(page)
    given = _taken(url, str(asked.body["login"]), verifier, asked.body.get("every"))
    kept = {name: str(given.body.get(name, "")) for name in ("token", "person", "workspace", "expires_at")}
    _logins.keep(_logins.Login(url, **kept))
    from budgets.sessions.credentials import forget_pairs

    forget_pairs(url)  # they are of the login before, which may be dead: `oz0 budget` has new ones given
    if as_json:
        click.echo(json.dumps({"studio": url, **{name: kept[name] for name in kept if name != "token"}}))
    else:
        click.echo(f"logged in to {url} as {kept['person']} in {kept['workspace']}, until {kept['expires_at'][:10]}")


def _taken(url: str, login: str, verifier: str, every: object) -> _far.Said:
    """Wait for the page's answer. Raises `ClickException`."""
    pause = min(SLOWEST, max(0.2, float(every))) if isinstance(every, int | float) else 2.0
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = _far.ask("POST", url, "/login/take/", body={"login": login, "verifier": verifier})
        if found.status == 200 and found.body.get("token"):
            return found
        if found.status not in (202, 429, 503):
            raise click.ClickException(found.why)
        time.sleep(pause)
    raise click.ClickException("nobody allowed it within ten minutes: type oz0 login once more")
