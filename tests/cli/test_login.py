"""`oz0 login` and what it is for, over real HTTP: the studio answers a command on another machine."""

import json
import stat
import webbrowser
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import pytest
from click.testing import CliRunner, Result

from base import db, ids
from jobs.models import Job, Starter
from jobs.operations import cancel
from studio.cli import _far, _far_jobs, main
from tenants.models import ApiToken
from tenants.rules.who import SYSTEM
from tests.budgets.ledgers import another
from tests.builders import World, a_world, see
from tests.catalogs import an_agent_of
from tests.pages.visitors import visitor
from tests.served import served


@pytest.fixture
def studio(database: object) -> Iterator[str]:
    with served() as url:
        yield url


@pytest.fixture
def world(database: object) -> World:
    world = a_world()
    an_agent_of(world, "keeper", "shop.*", input={"account": "A-1", "lines": []})
    return world


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

    monkeypatch.setattr(webbrowser, "open", answered)
    return oz0("login", studio)


@pytest.mark.rule("G1")
def test_one_logs_in_starts_a_job_as_oneself_lists_and_watches_it_and_logs_out(
    studio: str, world: World, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = logged_in(studio, world, monkeypatch)
    assert done.exit_code == 0, done.output
    assert f"logged in to {studio} as pat-acme in Acme" in done.output
    assert stat.S_IMODE(at_home.stat().st_mode) == 0o600
    token = json.loads(at_home.read_text())["logins"][0]["token"]
    assert token not in done.output
    done = oz0(
        "jobs", "start", "keeper", "--input", "account=B-2", "--json-file", "-", "--json", input='{"lines": [1]}'
    )
    assert done.exit_code == 0, done.output
    job_id: UUID = ids.parse(ids.JOB, json.loads(done.stdout)["job"])
    job = see(world, Job, job_id)
    assert job.input == {"account": "B-2", "lines": [1]}
    assert (job.starter, job.started_by_id, job.on_unknown) == (Starter.PERSON, world.person, "ask")
    with db.read(world.tenant):
        assert job.start_token_id == ApiToken.objects.get().pk
    listed = oz0("jobs", "list", "--live")
    assert ids.show(ids.JOB, job_id) in listed.output and "queued" in listed.output
    cancel.cancel_job(tenant=world.tenant, job_id=job_id, by=SYSTEM)
    watched = oz0("jobs", "watch", ids.show(ids.JOB, job_id))
    assert watched.exit_code == 3, watched.output
    assert "job of keeper queued" in watched.output and "job CANCELED" in watched.output
    refused = oz0("jobs", "start", "keeper", "--input", "month=1")
    assert refused.exit_code == 1 and "no input named 'month'" in refused.output
    assert oz0("logout").exit_code == 0 and json.loads(at_home.read_text()) == {"logins": []}
    assert visitor(world).get("/settings/tokens/").content.count(b"revoked") >= 1
    assert oz0("logout").exit_code == 1


def test_what_was_refused_or_revoked_is_told_and_how_to_go_on(
    studio: str, world: World, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = logged_in(studio, world, monkeypatch, said="deny")
    assert refused.exit_code == 1 and "refused on the page" in refused.output and not at_home.exists()
    nowhere = oz0("jobs", "list", "--studio", studio)
    assert nowhere.exit_code == 1 and f"fix: oz0 login {studio}" in nowhere.output
    logged_in(studio, world, monkeypatch)
    with db.write(world.tenant) as now:
        ApiToken.objects.update(revoked_at=now)
    over = oz0("jobs", "list")
    assert over.exit_code == 1 and "type oz0 login once more" in over.output
    assert oz0("logout").exit_code == 0  # it counts no more, and is forgotten


def test_a_login_spends_for_a_project_by_a_pair_that_is_exchanged_when_it_is_old(
    studio: str,
    world: World,
    at_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    move_clock: Callable[[timedelta], None],
) -> None:
    logged_in(studio, world, monkeypatch)
    another(world.tenant, name="research")
    one = ("--model", "gpt-4o", "--provider", "openai", "--input-tokens", "9")
    assert oz0("budget", "check", *one, "--project", "nothing").exit_code == 5
    done = oz0("budget", "check", *one, "--project", "research", "--json")
    assert done.exit_code == 0, done.output
    operation = json.loads(done.stdout.splitlines()[0])["operation_id"]
    kept = next(at_home.parent.glob("budgets/*/*/refresh"))
    before = kept.read_text()
    move_clock(timedelta(minutes=16))  # past the end of its access
    found = oz0("budget", "recover", operation)
    assert found.exit_code == 0, found.output
    assert kept.read_text() != before
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


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


def test_a_start_whose_answer_is_lost_is_asked_for_again_and_starts_one_job(
    studio: str, world: World, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged_in(studio, world, monkeypatch)
    real, lost = _far.ask, list[str]()

    def ask(method: str, url: str, path: str, **more: Any) -> Any:
        found = real(method, url, path, **more)
        if method == "POST" and not lost:
            lost.append(path)
            raise click.ClickException("the connection ended before an answer")
        return found

    monkeypatch.setattr(_far, "ask", ask)
    monkeypatch.setattr(_far_jobs, "POLL", 0.01)
    done = oz0("jobs", "start", "keeper")
    assert done.exit_code == 0 and lost, done.output
    with db.read(world.tenant):
        assert Job.objects.count() == 1
