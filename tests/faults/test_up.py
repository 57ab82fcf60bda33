"""`oz0 up`, really up: one terminal, one Ctrl-C, nothing left behind whatever ends it (RULES L10)."""

import signal

import psycopg
import pytest

from studio.embedded import kept
from tests.clusters import seed
from tests.faults.processes import alive, family, lives, until
from tests.faults.studios import READY_IN, free_port, state_folder, studio_in

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """One studio that stays up, whatever is done to its parts."""
    with state_folder(tmp_path_factory.mktemp("up")) as folder, studio_in(folder) as running:
        yield running.ready()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder in which one studio after the other is started and ended."""
    with state_folder(tmp_path_factory.mktemp("ends")) as folder:
        yield seed(folder)


def test_it_prints_one_link_as_soon_as_pages_are_served(studio):
    assert studio.link.startswith(f"http://127.0.0.1:{studio.port}/sign-in/")
    assert studio.answers()


def test_it_says_who_says_what(studio):
    assert until(lambda: studio.said("node     | ") and studio.said("ready."), READY_IN)
    assert studio.said("web      | ")
    assert studio.said("postgres | ")


def test_a_second_one_in_the_same_folder_is_refused_with_the_address_of_the_first(studio):
    with studio_in(studio.home) as second:
        assert second.process.wait(30) == 1
        second.reader.join(10)
    assert second.lines == [
        f"Error: oz0 is already up in {studio.home} (process {studio.process.pid}, http://127.0.0.1:{studio.port}/): "
        "stop that one (Ctrl-C in its terminal, or `kill` and that number), or set OZ0_HOME to another folder"
    ]


@pytest.mark.parametrize("words", ["studio.cli web", "studio.cli node"])
def test_a_killed_program_is_started_again(studio, words):
    before = studio.part(words)
    before.kill()
    assert until(lambda: not lives(before))
    assert until(lambda: studio.said(f"{words.split()[-1]} ended (SIGKILL); it starts again in"))
    assert studio.part(words).pid != before.pid
    assert until(studio.answers, READY_IN)


def test_a_killed_database_is_started_again_with_what_was_committed(studio):
    known = kept.load(studio.home)
    with psycopg.connect(known["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute("CREATE TABLE IF NOT EXISTS survives (id int)")
    studio.part("bin/postgres").kill()

    def back():
        try:
            with psycopg.connect(known["DATABASE_URL"], connect_timeout=2) as app:
                return app.execute("SELECT to_regclass('survives')").fetchone() == ("survives",)
        except psycopg.OperationalError:
            return False

    assert until(lambda: studio.said("postgres ended (SIGKILL)"), 10)
    assert until(back, READY_IN)


def test_a_killed_broker_is_started_again(studio):
    before = studio.part("valkey-server")
    before.kill()
    assert until(lambda: studio.said("valkey ended (SIGKILL)"), 10)
    assert studio.part("valkey-server").pid != before.pid


@pytest.mark.rule("L10")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ending_it_while_it_is_still_starting_leaves_nothing(home, number):
    with studio_in(home) as running:
        assert until(lambda: running.said("postgres | "), READY_IN)
        _, left = running.end(number)
        assert left == []
        assert running.process.returncode == 0


def test_a_start_right_after_a_kill_waits_for_what_is_still_going(home):
    port = free_port()
    with studio_in(home, port) as first:
        first.ready()
        everything = family(first.process.pid)
        first.process.kill()
        first.process.wait(10)
        with studio_in(home, port) as second:
            second.ready()
            assert alive(everything) == []
