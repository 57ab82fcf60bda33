"""`oz0 status`: whether the studio of this state folder is up."""

import json

import click

from studio.cli import _told


@click.command(
    cls=_told.Told,
    short_help="Say whether the studio here is up.",
    exits={_told.Exit.DONE: "it is up", _told.Exit.FAILED: "it is down, or a service does not answer"},
    examples=["oz0 status", "oz0 status --json"],
)
@_told.json_option
def status(as_json: bool) -> None:
    """Say whether this state folder's studio is up and its services answer."""
    from studio.embedded import kept
    from studio.embedded.failure import CannotStart
    from studio.state_folder import state_folder
    from studio.supervisor import one_at_a_time

    home = state_folder()
    holder = one_at_a_time.holder(home)
    try:
        known = kept.load(home)
    except CannotStart as error:
        raise click.ClickException(str(error)) from error
    answers = {
        "PostgreSQL": _database(_address("DATABASE_URL", known)),
        "Valkey": _broker(_address("REDIS_URL", known)),
    }
    if as_json:
        told = {name: {"answers": why is None, "why": why} for name, why in answers.items()}
        click.echo(json.dumps({"up": holder is not None, "by": holder, "state": str(home), "services": told}))
    else:
        click.echo(f"studio      {f'up ({holder})' if holder else 'down'}, state folder {home}")
        for name, why in answers.items():
            click.echo(f"{name:<11} {'answers' if why is None else why}")
    if holder is None or any(answers.values()):
        raise SystemExit(_told.Exit.FAILED)


def _address(name: str, known: dict[str, str]) -> str:
    import os

    return os.environ.get(name) or known.get(name, "")


def _database(url: str) -> str | None:
    """None when it answers, else why not."""
    import psycopg

    if not url:
        return "was never started here"
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        return f"does not answer: {' '.join(str(error).split())}"
    return None


def _broker(url: str) -> str | None:
    """None when it answers, else why not."""
    import redis

    if not url:
        return "was never started here"
    client = redis.Redis.from_url(url, socket_timeout=2)
    try:
        client.ping()
    except redis.RedisError as error:
        return f"does not answer: {error}"
    finally:
        client.close()
    return None
