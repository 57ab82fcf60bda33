"""The embedded PostgreSQL and Valkey: what their roles may do, and that they come back from anything."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from studio import embedded
from studio.embedded import kept
from studio.embedded.failure import CannotStart
from tests.faults.processes import lives, until

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with embedded.postgres(tmp_path_factory.mktemp("postgres"), keep=False) as running:
        yield running


def rows(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def run(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def test_it_is_postgresql_18_with_checksums_fsync_and_room_for_200_connections(server):
    names = ("fsync", "data_checksums", "max_connections", "listen_addresses")
    found = [rows(server.url_app, f"SHOW {name}")[0][0] for name in names]
    assert rows(server.url_app, "SHOW server_version")[0][0].startswith("18.")
    assert found == ["on", "on", "200", ""]


def test_the_roles_are_what_the_design_says(server):
    query = """SELECT rolname, rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication
               FROM pg_roles WHERE rolname LIKE 'oz0%' ORDER BY rolname"""
    assert rows(server.url_admin, query) == [
        ("oz0_app", True, False, False, False, False, False),
        ("oz0_owner", True, False, False, False, False, False),
        ("oz0_sweep", False, False, False, False, False, False),
    ]


def test_a_password_is_asked_for_and_a_wrong_one_is_refused(server):
    socket = server.place.sockets
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(f"postgres://oz0_app@/oz0?host={socket}")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"postgres://oz0_app:guess@/oz0?host={socket}")


def test_the_app_works_in_the_owners_tables_and_sees_only_what_a_policy_shows(server):
    run(
        server.url_owner,
        "CREATE TABLE note (id bigserial PRIMARY KEY, tenant int)",
        "INSERT INTO note (tenant) VALUES (1), (2)",
        "ALTER TABLE note ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON note TO oz0_app USING (tenant = 1)",
    )
    assert rows(server.url_app, "SELECT tenant FROM note") == [(1,)]
    run(server.url_app, "INSERT INTO note (tenant) VALUES (1)", "UPDATE note SET tenant = 1", "DELETE FROM note")
    assert rows(server.url_owner, "SELECT tenant FROM note") == [(2,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(server.url_app, "ALTER TABLE note DISABLE ROW LEVEL SECURITY")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(server.url_app, "CREATE TABLE mine (id int)")


def test_the_app_becomes_the_sweep_only_by_saying_so_and_the_sweep_has_nothing_by_itself(server):
    run(
        server.url_owner,
        "CREATE TABLE due (id int)",
        "CREATE TABLE given (id int)",
        "GRANT SELECT ON given TO oz0_sweep",
    )
    run(server.url_app, "SET ROLE oz0_sweep", "SELECT * FROM given")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(server.url_app, "SET ROLE oz0_sweep", "SELECT * FROM due")
    run(server.url_owner, "REVOKE ALL ON given FROM oz0_app")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(server.url_app, "SELECT * FROM given")  # the sweep's grant is not inherited


def test_passwords_are_kept_for_this_account_only(server):
    file = server.home / "services.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert kept.load(server.home)["DATABASE_URL"] == server.url_app


def test_the_server_never_runs_as_root_and_nobody_else_reads_its_data(server):
    as_whom = os.geteuid() or server.place.uid
    assert as_whom
    assert {process.uids().effective for process in server_processes(server)} == {as_whom}
    assert stat.S_IMODE(server.place.data.stat().st_mode) == 0o700


def server_processes(server):
    guardian = psutil.Process(server.child.process.pid)
    return guardian.children(recursive=True)


def test_what_was_committed_survives_a_kill_of_every_process(server):
    run(server.url_owner, "CREATE TABLE kept_row (id int)", "INSERT INTO kept_row VALUES (1)")
    killed = server_processes(server)
    assert len(killed) > 3
    server.kill()
    assert not any(map(lives, killed))
    server.start()
    assert rows(server.url_owner, "SELECT id FROM kept_row") == [(1,)]


def test_a_killed_postmaster_takes_its_backends_along_and_starts_again_at_the_same_address(server):
    address = server.url_app
    processes = server_processes(server)
    postmaster = next(process for process in processes if process.ppid() == server.child.process.pid)
    postmaster.send_signal(signal.SIGKILL)
    assert until(lambda: server.ended() is not None)
    assert not any(map(lives, processes))
    server.start()
    assert rows(address, "SELECT 1") == [(1,)]


def test_a_pid_file_that_names_another_program_does_not_keep_it_down(server):
    server.kill()
    file = server._data / "postmaster.pid"
    lines = file.read_text().split("\n")
    file.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    server.start()
    assert rows(server.url_app, "SELECT 1") == [(1,)]


def test_a_restart_keeps_the_address(server):
    address = server.url_app
    server.restart()
    assert rows(address, "SELECT 1") == [(1,)]


def test_lost_passwords_are_replaced(server):
    server.stop()
    (server.home / "services.json").unlink()
    with embedded.postgres(server.home) as again:
        assert again.url_admin != server.url_admin
        assert rows(again.url_app, "SELECT 1") == [(1,)]
    server._passwords = again._passwords
    server.start()


HOLDS_A_SERVER = textwrap.dedent("""
    import pathlib, sys, time
    from studio import embedded
    server = embedded.Postgres(pathlib.Path(sys.argv[1]), outlive=1.0, fsync=False)
    server.start()
    print(server.child.process.pid, flush=True)
    time.sleep(600)
""")


def test_it_outlives_a_killed_holder_by_its_time_only_and_a_next_start_waits_for_it(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDS_A_SERVER, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        with holder.stdout:
            guardian = int(holder.stdout.readline())
        old = psutil.Process(guardian).children(recursive=True)
    finally:
        holder.kill()
        holder.wait()
    assert lives(guardian)
    with embedded.postgres(tmp_path, keep=False, fsync=False) as server:
        assert not any(map(lives, old))
        assert rows(server.url_app, "SELECT 1") == [(1,)]


def test_a_server_that_cannot_start_says_why_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("studio.embedded.service.RETRIES_FOR", 0.0)
    server = embedded.postgres(tmp_path, keep=False, fsync=False)
    server._settings["max_connections"] = "many"
    with pytest.raises(CannotStart, match=r'PostgreSQL does not start: .*invalid value for parameter "max_conn'):
        with server:
            pass


def test_services_json_of_odd_content_is_refused_by_name(tmp_path):
    (tmp_path / "services.json").write_text("[1]")
    with pytest.raises(CannotStart, match=r"services\.json is not an object of texts: delete it and start again"):
        embedded.postgres(tmp_path)


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match="cannot keep the services' addresses"):
        kept.save(tmp_path / "file" / "home", {})


@pytest.fixture
def valkey(tmp_path):
    with embedded.valkey(tmp_path, keep=False) as running:
        yield running


def client(url):
    return redis.Redis.from_url(url, socket_timeout=2)


def test_valkey_answers_only_with_its_password(valkey):
    with client(valkey.url) as knows:
        assert knows.ping()
    with client(f"unix://{valkey._socket}") as guesses, pytest.raises(redis.AuthenticationError):
        guesses.ping()


def test_valkey_comes_back_empty_at_the_same_address(valkey):
    with client(valkey.url) as before:
        before.set("key", "value")
    valkey.kill()
    with client(valkey.url) as dead, pytest.raises(redis.ConnectionError):
        dead.ping()
    valkey.start()
    with client(valkey.url) as after:
        assert after.get("key") is None


def test_valkey_starts_in_a_folder_of_any_name(tmp_path):
    server = embedded.valkey(tmp_path, keep=False)
    usual = server.place
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o755)  # root's services run as another account
        odd = usual.folder(Path(above) / 'größer "als" \\ zwei')
        server.place = replace(usual, data=odd)
        with server, client(server.url) as knows:
            assert knows.ping()
    usual.remove()


def test_two_folders_have_two_servers(valkey, tmp_path_factory):
    with embedded.valkey(tmp_path_factory.mktemp("other"), keep=False) as other:
        with client(valkey.url) as one, client(other.url) as two:
            one.set("key", "value")
            assert two.get("key") is None
