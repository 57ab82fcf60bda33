"""What the commands of `oz0 budget` share: whose journal, with what key, how a call ends, and what is shown of it."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from studio.cli import _far, _logins

if TYPE_CHECKING:
    from budgets.sessions.calls import Call
    from budgets.sessions.credentials import Credentials, PairOfLogin
    from budgets.sessions.standalone import Trouble

DONE: Final = 0
FAILED: Final = 1
CREDENTIALS: Final = 3
DENIED: Final = 4
NOT_FOUND: Final = 5
EXITS: Final[Mapping[int, str]] = {
    DONE: "done",
    FAILED: "it failed, or nobody knows what came of it",
    CREDENTIALS: "there is no key, or it counts no more, or may not do that",
    NOT_FOUND: "the journal has no such operation, reservation or run",
}
TRADE: Final = "/api/v1/budgets/tokens"
NO_KEY: Final = frozenset({"credentials_missing", "credentials_refused", "not_allowed"})

type Decorated = Callable[..., Any]


def journal_options(command: Decorated) -> Decorated:
    """Which journal is asked, and by what key."""
    for one in (
        click.option("--project", help="A project of the studio that you are logged in to, by its name."),
        click.option("--key-file", type=click.Path(path_type=Path), help="The file of a project's key."),
        click.option("--studio", metavar="URL", help="The studio; left out: OZ0_BUDGET_URL, else your last login."),
    ):
        command = one(command)
    return command


def journal(studio: str | None, key_file: Path | None, project: str | None) -> "tuple[str, Credentials]":
    """The studio that is asked, and where its key is. Raises `click.UsageError`, `SystemExit`."""
    from budgets.sessions.credentials import STUDIO, OnlyPair, PairOfLogin, SeveralPairs, found_for

    logins = _logins.kept()
    named = studio or os.environ.get(STUDIO) or next(iter(logins), "")
    if not named:
        raise click.UsageError("no studio is named: add --studio URL, set OZ0_BUDGET_URL, or type oz0 login")
    url = _far.read_studio(named)
    try:
        found = found_for(url, file=key_file, project=project)
        if isinstance(found, OnlyPair) and url in logins and not _is_there(found):
            raise click.UsageError("name the project whose budget it is: --project NAME")
    except (SeveralPairs, ValueError) as error:
        raise click.UsageError(str(error)) from error
    if isinstance(found, PairOfLogin) and url in logins:
        with found.alone():
            if not _is_there(found):
                _trade(found, logins[url])
    return url, found


def done(call: "Call", asked: "tuple[str, Credentials]") -> "Trouble":
    """Do it."""
    from budgets.sessions import standalone

    return standalone.done(call, studio=asked[0], credentials=asked[1])


def exit_of(trouble: "Trouble") -> int:
    """The exit code of a call that came to this."""
    if trouble is None:
        return DONE
    code = code_of(trouble)
    if code in NO_KEY:
        return CREDENTIALS
    return NOT_FOUND if code.endswith("_not_found") else FAILED


def code_of(trouble: "Trouble") -> str:
    """The word of a failure."""
    return str(getattr(trouble, "code", None) or getattr(trouble, "bound", None) or "credentials_missing")


def told(call: "Call", trouble: "Trouble") -> dict[str, Any]:
    """What a call came to, as the tools of `oz0-budget` say it."""
    error = None if trouble is None else {"code": code_of(trouble), "message": str(trouble)}
    return {"ok": trouble is None, "data": call.data(), "error": error, "recovery": call.recovery.as_json()}


def show(call: "Call", trouble: "Trouble", *, as_json: bool, lines: Callable[[], list[str]]) -> None:
    """Print what it came to, and on standard error what went wrong."""
    from base.visible import visible

    if as_json:
        click.echo(json.dumps(told(call, trouble), ensure_ascii=False))
    else:
        for line in lines():
            click.echo(visible(line, 2_000))
    if trouble is not None:
        click.echo(f"Error: {code_of(trouble)}: {visible(str(trouble), 2_000)}", err=True)


def read_json(file: IO[str], what: str) -> Any:
    """The JSON of a file. Raises `click.BadParameter`."""
    try:
        return json.loads(file.read())
    except ValueError as error:
        raise click.BadParameter(f"{what} is not JSON: {error}") from error


def _is_there(pair: "Credentials") -> bool:
    """Whether there is a pair. Raises `SeveralPairs`."""
    from budgets.sessions.credentials import NoCredentials, SeveralPairs

    try:
        pair.read()
    except SeveralPairs:
        raise
    except NoCredentials:
        return False
    return True


def _trade(kept: "PairOfLogin", login: "_logins.Login") -> None:
    """Have the studio give a token pair for the login, once."""
    from budgets.sessions.credentials import Pair

    project = str(kept.project)
    answer = _far.ask("POST", login.url, TRADE, token=login.token, body={"project": project})
    if answer.status == 403:  # who only looks at things gets a key that only does
        answer = _far.ask("POST", login.url, TRADE, token=login.token, body={"project": project, "scope": "read_only"})
    pair = Pair.read(answer.body) if answer.ok else None
    if pair is None:
        detail = answer.body.get("detail")
        said = detail.get("message") or detail.get("code") if isinstance(detail, Mapping) else answer.why
        click.echo(f"Error: {login.url} gave no key of {project}: {said}", err=True)
        raise SystemExit({401: CREDENTIALS, 403: CREDENTIALS, 404: NOT_FOUND}.get(answer.status, FAILED))
    kept.save(replace(pair, name=project))
