"""Every command of `compose.yaml`, run here as its containers would, on services of the test's own."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from base.ports import listens
from studio import embedded
from studio.embedded.roles import APP, OWNER
from tests.faults.processes import until
from tests.faults.studios import READY_IN, free_port
from tests.repo.containers import Container, ours
from tests.repo.tree import ROOT

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]
DATABASE = "contained"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the variables hold when the services are there; a cluster that knows nothing of the studio's database."""
    folder = tmp_path_factory.mktemp("services")
    with embedded.postgres(folder / "postgres", fsync=False, keep=False) as postgres:
        with embedded.valkey(folder / "valkey", keep=False) as valkey:
            yield {
                "OZ0_SECRET_KEY": "for tests only, and long enough to be one",
                "OZ0_ADMIN_DATABASE_URL": postgres.url("postgres", "postgres"),
                "DATABASE_OWNER_URL": postgres.url(OWNER, DATABASE),
                "DATABASE_URL": postgres.url(APP, DATABASE),
                "REDIS_URL": valkey.url,
                "BROKER_URL": valkey.url_broker,
                "OZ0_ALLOWED_HOSTS": "127.0.0.1,localhost",
                "OZ0_TRUSTED_ORIGINS": "",
                "OZ0_DRAIN": "1",
                "OZ0_HOME": str(folder / "state"),
            }


def environment(container: Container, given: dict[str, str]) -> dict[str, str]:
    """Only what compose gives this container, and the state folder that the image names."""
    ours_alone = ("OZ0_", "DATABASE_", "REDIS_", "BROKER_", "DJANGO_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours_alone)}
    return clean | {name: given[name] for name in (*container.variables, "OZ0_HOME")} | {"PYTHONUNBUFFERED": "1"}


def argv(*words: str) -> list[str]:
    assert words[0] == "oz0"
    return [sys.executable, "-m", "studio.cli", *words[1:]]


def run(name: str, given: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """A container's command, or another one in it, to its end."""
    container = ours(ROOT)[name]
    command = argv(*(words or container.command))
    env = environment(container, given)
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100)


class Running:
    """A container's command that stays up, and what it said."""

    def __init__(self, name: str, given: dict[str, str], *more: str) -> None:
        container = ours(ROOT)[name]
        words = [word.replace("0.0.0.0", "127.0.0.1") for word in container.command]
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            argv(*words, *more),
            cwd=ROOT,
            env=environment(container, given),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout
        with self.process.stdout:
            for line in self.process.stdout:
                self.lines.append(line)

    def said(self, words: str) -> bool:
        return any(words in line for line in self.lines)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.reader.join(10)


def test_the_steps_of_compose_bring_up_a_studio_on_services_of_ones_own(given: dict[str, str]) -> None:
    for name in ("prepare", "prepare", "migrate"):  # twice: containers are started again
        done = run(name, given)
        assert done.returncode == 0, done.stderr
    port = free_port()
    web, node = Running("web", given, "--port", str(port)), Running("node", given)
    try:
        assert until(lambda: listens(port), READY_IN), web.lines
        check = [word.replace(":8000", f":{port}") for word in ours(ROOT)["web"].healthcheck]
        assert check[0] == "python"
        healthy = partial(subprocess.run, [sys.executable, *check[1:]], capture_output=True, timeout=30, check=False)
        assert until(lambda: healthy().returncode == 0, READY_IN), web.lines  # it is asked again there as well
        assert until(lambda: node.said("ready."), READY_IN), node.lines
        loaded = run("node", given, "oz0", "load-examples")
        assert "started a job of shopkeeper" in loaded.stdout, loaded.stderr
    finally:
        node.end()
        web.end()
    assert node.process.returncode == 0, node.lines
    assert Path(given["OZ0_HOME"], "plugins").is_dir()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OZ0_ADMIN_DATABASE_URL", "", "OZ0_ADMIN_DATABASE_URL must be a postgres:// address"),
        ("OZ0_ADMIN_DATABASE_URL", "postgres://postgres:no@127.0.0.1:1/postgres", "Connection refused"),
        ("DATABASE_URL", "postgres://me:pw@127.0.0.1/oz0", "DATABASE_URL must name the role oz0_app and a password"),
        ("DATABASE_URL", "postgres://oz0_app:pw@127.0.0.1/other", "must end in the same database"),
    ],
)
def test_preparing_says_which_address_is_wrong(given: dict[str, str], name: str, value: str, said: str) -> None:
    done = run("prepare", given | {name: value})
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
