"""Jobs of a studio that this account is logged in to: started, listed and watched over `/api/v1/`."""

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

import click

from studio.cli import _far, _logins, _told
from studio.state_folder import state_folder

POLL: Final = 1.0  # seconds between looks while nothing happens
LONGEST_POLL: Final = 10.0  # the same while the studio does not answer
PATIENCE: Final = 120.0  # seconds without an answer after which watching gives up; the job runs on
AGAIN: Final = frozenset({429, 502, 503, 504})


def login_for(studio: str | None) -> _logins.Login | None:
    """The login to use: of the studio named, else none where this folder has a studio of its own, else the last one.

    Raises `ClickException` where the studio that is named was never logged in to.
    """
    kept = _logins.kept()
    if studio:
        url = _far.read_studio(studio)
        if url not in kept:
            raise click.ClickException(f"you are not logged in to {url}\n  fix: oz0 login {url}")
        return kept[url]
    if "DATABASE_URL" in os.environ or (state_folder() / "services.json").exists():
        return None
    return next(iter(kept.values()), None)


def start(login: _logins.Login, agent: str, given: Mapping[str, Any], title: str) -> Mapping[str, Any]:
    """Start a job, once however often it is asked for; the job as the studio tells of it."""
    key = secrets.token_urlsafe(24)
    body = {"agent": agent, "input": dict(given), "title": title}
    found = _asked(login, "POST", "/api/v1/jobs", body=body, headers={"Idempotency-Key": key}, tries=3)
    return _told_of(found)


def listed(login: _logins.Login, wanted: Mapping[str, str], most: int) -> Iterator[Mapping[str, Any]]:
    """Jobs that fit, the newest first, page by page."""
    after, left = "", most
    while left > 0:
        query = {**wanted, "limit": str(min(left, 100)), **({"after": after} if after else {})}
        page = _told_of(_asked(login, "GET", f"/api/v1/jobs?{urlencode(query)}", tries=3))
        yield from page["jobs"][:left]
        left -= len(page["jobs"])
        after = page["next"] or ""
        if not after:
            return


def watch(
    login: _logins.Login, job: str, show: Callable[[Mapping[str, Any]], None], *, pause: float = POLL
) -> Mapping[str, Any]:
    """Show each event of a job until it has ended; the job as it then is. Ctrl-C leaves it running."""
    _told_of(_asked(login, "GET", f"/api/v1/jobs/{job}", tries=3))  # an id that is none is told at once
    after = 0
    while True:
        page = _told_of(_asked(login, "GET", f"/api/v1/jobs/{job}/events?after={after}", tries=0))
        for event in page["events"]:
            show(event)
        after = int(page["next"])
        if page["over"] and not page["events"]:
            return _told_of(_asked(login, "GET", f"/api/v1/jobs/{job}", tries=3))
        if not page["more"] and not page["events"]:
            time.sleep(pause)


def _asked(
    login: _logins.Login,
    method: str,
    path: str,
    *,
    body: object = None,
    headers: dict[str, str] | None = None,
    tries: int,
) -> _far.Said:
    """One answer. What may be asked again is, `tries` times, or with 0 for two minutes. Raises `ClickException`."""
    began, pause, made = time.monotonic(), POLL, 0
    while True:
        made += 1
        over = made >= tries if tries else time.monotonic() - began > PATIENCE
        try:
            found = _far.ask(method, login.url, path, token=login.token, body=body, headers=headers)
        except click.ClickException:
            if over:
                raise
        else:
            if found.status not in AGAIN or over:
                return found
        time.sleep(pause)
        pause = min(LONGEST_POLL, pause * 2)


def _told_of(found: _far.Said) -> Mapping[str, Any]:
    if found.status == 401:
        raise click.ClickException("your login counts no more: type oz0 login once more")
    if not found.ok:
        raise click.ClickException(found.why)
    return found.body


def line_of(job: Mapping[str, Any]) -> str:
    """A job in a line of text."""
    from base.visible import visible

    at = datetime.fromisoformat(str(job["created_at"])).strftime("%d %b %H:%M")
    asks = f"  {job['asks']} open" if job.get("asks") else ""
    title, agent = visible(str(job["title"]), 60), visible(str(job["agent"]), 40)
    return f"{job['id']}  {job['state']:<10} {at}  {title}  ({agent}){asks}"


def exit_of(state: str, canceled: int) -> int:
    """The exit code of a job's end."""
    return {"COMPLETED": int(_told.Exit.DONE), "CANCELED": canceled}.get(state, int(_told.Exit.FAILED))


def as_json(value: Mapping[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False)
