"""The `oz0` command as a person meets it."""

import os
import socket
import subprocess
import sys

import psutil
import pytest


def oz0(*words, home=None, **more):
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OZ0_", "DATABASE_", "REDIS_", "BROKER_"))
    }
    env |= {"OZ0_HOME": str(home)} if home else {}
    return subprocess.run(
        [sys.executable, "-m", "studio.cli", *words], env=env | more, capture_output=True, text=True, timeout=60
    )


def test_help_lists_the_commands():
    done = oz0("--help")
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in ("up", "status", "web", "node", "migrate"))


def test_help_reads_no_django_celery_or_mcp():
    look = "import sys; from studio.cli import main; main(['--help'], standalone_mode=False)"
    look += "; print([name for name in ('django', 'celery', 'mcp', 'psycopg', 'redis') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_unknown_command_is_refused_by_name():
    assert "No such command 'upp'" in oz0("upp").stderr


def test_a_taken_port_is_named_with_the_way_out(tmp_path):
    """CASES F02."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = oz0("up", "--port", str(port), home=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"Error: port {port} is taken by {psutil.Process().name()} (process {os.getpid()}): choose another one,"
        f" with `oz0 up --port {port + 1}` or `make run PORT={port + 1}`\n"
    )


def test_a_database_of_ones_own_needs_its_owner_too(tmp_path):
    done = oz0("up", "--port", "0", home=tmp_path, DATABASE_URL="postgres://a@127.0.0.1/b")
    assert done.returncode == 2  # port 0 is no port
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = oz0("up", "--port", str(port), home=tmp_path, DATABASE_URL="postgres://a@127.0.0.1/b")
    assert "DATABASE_URL is set: set DATABASE_OWNER_URL too" in done.stderr


def test_a_state_folder_that_is_a_file_is_refused_in_a_sentence(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    done = oz0("up", home=file)
    assert done.stderr == f"Error: cannot keep the lock of the state folder ({file}): File exists\n"


def test_status_of_a_folder_where_nothing_runs(tmp_path):
    done = oz0("status", home=tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"studio      down, state folder {tmp_path}",
        "PostgreSQL  was never started here",
        "Valkey      was never started here",
    ]


@pytest.mark.parametrize("command", ["migrate", "node", "web"])
def test_a_command_without_settings_says_what_to_do(tmp_path, command):
    done = oz0(command, home=tmp_path)
    assert done.returncode == 1
    assert "run `oz0 up` here first" in done.stderr
    assert "Traceback" not in done.stderr
