"""A real browser against the real server: `studio` is the web process, `browser` Chromium, `page` a signed-in tab."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from channels.layers import channel_layers
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from studio import embedded
from tenants.models import User
from tests.browser.chromium import MISSING, QUIET, chromium
from tests.builders import World, a_world
from tests.waiting import until

PASSWORD = "a password for tests"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Studio:
    """A web process under test."""

    url: str
    redis: embedded.Valkey


@pytest.fixture(scope="package")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.Valkey]:
    """A broker and channel layer of the browser tests' own."""
    with embedded.valkey(tmp_path_factory.mktemp("valkey"), keep=False) as server:
        yield server


@pytest.fixture(scope="package")
def studio(
    cluster: embedded.Postgres, valkey: embedded.Valkey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Studio]:
    """The web process on a free port, with this process's nudges going the same way as its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("web")
    env = os.environ | {
        "DATABASE_URL": cluster.url_app,
        "REDIS_URL": valkey.url,
        "BROKER_URL": "redis://127.0.0.1:1/0",
        "OZ0_SECRET_KEY": settings.SECRET_KEY,
        "OZ0_HOME": str(home),
    }
    layer = settings.CHANNEL_LAYERS["default"]["CONFIG"]["hosts"][0]
    before, layer["address"] = layer["address"], valkey.url
    channel_layers.backends.clear()
    log = (home / "web.log").open("wb")
    words = ["daphne", "--bind", "127.0.0.1", "--port", str(port), "studio.asgi:application"]
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, env=env, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: process.poll() is not None or _answers(url), "the web process does not answer", seconds=30)
        assert process.poll() is None, (home / "web.log").read_text()[-2000:]
        yield Studio(url, valkey)
    finally:
        process.terminate()
        process.wait(timeout=10)
        log.close()
        layer["address"] = before
        channel_layers.backends.clear()


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/sign-in/", timeout=2).status_code == 200
    except httpx2.TransportError:
        return False


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The Chromium of this machine."""
    program = chromium()
    assert program is not None, MISSING
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv(
            "DJANGO_ALLOW_ASYNC_UNSAFE", "1"
        )  # playwright leaves its loop running in this thread; we never use it
        opened = playwright.chromium.launch(executable_path=program, args=[*QUIET])
        yield opened
        opened.close()


@pytest.fixture
def world(studio: Studio, database: embedded.Postgres) -> World:
    """A workspace with a person."""
    return a_world()


@pytest.fixture
def context(studio: Studio, browser: Browser, world: World) -> Iterator[BrowserContext]:
    """One person's browser, signed in. Whatever the page complains about in its console fails the test."""
    opened = browser.new_context(base_url=studio.url, viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    opened.set_default_timeout(10_000)
    said: list[str] = []
    opened.on("weberror", lambda error: said.append(str(error.error)))
    opened.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    sign_in(opened, studio.url, world.person)
    opened.new_page()
    yield opened
    opened.close()
    assert not [line for line in said if "WebSocket" not in line and "status of" not in line], said


def sign_in(context: BrowserContext, url: str, person: int) -> None:
    """Give this browser a session of its own, without the seconds that hashing a password takes."""
    client = Client()
    client.force_login(User.objects.get(pk=person))
    context.add_cookies([{"name": "oz0_session", "value": client.cookies["oz0_session"].value, "url": url}])


def sign_in_by_password(page: Page, person: int) -> None:
    """Sign in as a person does, who has no password before."""
    user = User.objects.get(pk=person)
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    page.goto("/sign-in/")
    page.get_by_label("Name").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """The signed-in tab."""
    return context.pages[0]


def live(page: Page, path: str) -> None:
    """Open a page and wait until its socket is there."""
    page.goto(path)
    page.locator("#connection", has_text="Live").wait_for()
    read(page)


def read(page: Page) -> None:
    """Wait until the question that was chosen stands there and could have been read: before, no answer counts."""
    page.locator("body:not([data-unread])").wait_for()
