"""`oz0 login` and what it is for, over real HTTP: the studio answers a command on another machine."""

import json
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from django.db import connection
from django.test import Client

from base import db
from studio.cli import login, main
from tenants.models import ApiToken
from tenants.rules.bearers import is_token
from tests.builders import World, a_world
from tests.pages.visitors import visitor


class _Studio(BaseHTTPRequestHandler):
    """Hands each request to the pages as they are, in a process of the test's own."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        given = {name: value for name, value in self.headers.items() if name not in ("Content-Length", "Host")}
        kind = given.pop("Content-Type", "application/octet-stream")
        try:
            found = Client().generic(self.command, self.path, body, content_type=kind, headers=given)
        finally:
            connection.close()
        self.send_response(found.status_code)
        self.send_header("Content-Type", found.headers.get("Content-Type", ""))
        self.send_header("Content-Length", str(len(found.content)))
        self.end_headers()
        self.wfile.write(found.content)

    do_GET = do_POST = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def studio(database: object) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Studio)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.fixture
def world(database: object) -> World:
    return a_world()


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An account on a machine where no studio is."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("OZ0_HOME", str(tmp_path / "no studio"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return tmp_path / "oz0" / "logins.json"


def oz0(*words: str, **more: Any) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="oz0", **more)


def logged_in(studio: str, world: World, monkeypatch: pytest.MonkeyPatch, said: str = "allow") -> Result:
    """`oz0 login`, whose person answers when the browser opens."""

    def answered(page: str) -> bool:
        assert page.startswith(f"{studio}/login/login_")
        assert visitor(world).post(page.removeprefix(studio), {"answer": said}).status_code == 200
        return True

    monkeypatch.setattr(login.webbrowser, "open", answered)
    return oz0("login", studio)


def test_one_logs_in_by_ones_page_the_token_is_for_this_account_alone_and_logging_out_revokes_it(
    studio: str, world: World, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = logged_in(studio, world, monkeypatch)
    assert done.exit_code == 0, done.output
    assert f"logged in to {studio} as pat-acme in Acme" in done.output
    assert stat.S_IMODE(at_home.stat().st_mode) == 0o600
    token = json.loads(at_home.read_text())["logins"][0]["token"]
    assert is_token(token) and token not in done.output
    again = logged_in(studio, world, monkeypatch)
    assert again.exit_code == 0 and len(json.loads(at_home.read_text())["logins"]) == 1
    assert oz0("logout", studio).exit_code == 0 and json.loads(at_home.read_text()) == {"logins": []}
    assert oz0("logout").exit_code == 1
    with db.read(world.tenant):
        assert sorted(row.revoked_at is None for row in ApiToken.objects.all()) == [False, True]


def test_what_was_refused_or_revoked_is_told_and_how_to_go_on(
    studio: str, world: World, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = logged_in(studio, world, monkeypatch, said="deny")
    assert refused.exit_code == 1 and "refused on the page" in refused.output and not at_home.exists()
    logged_in(studio, world, monkeypatch)
    with db.write(world.tenant) as now:
        ApiToken.objects.update(revoked_at=now)
    assert oz0("logout").exit_code == 0  # it counts no more, and is forgotten


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://studio.example.org", "is not https"),
        ("ftp://x", "is no address"),
        ("http://127.0.0.1:1", "cannot be asked"),
    ],
)
def test_an_address_over_which_a_token_would_be_read_or_where_nobody_answers_is_refused(
    address: str, why: str, at_home: Path
) -> None:
    done = oz0("login", address, "--no-browser")
    assert done.exit_code == 1 and why in done.output and not at_home.exists()
