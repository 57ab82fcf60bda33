"""Nothing outlives its parent: the guardian, with real processes killed for real."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from base import children
from tests.faults.processes import lives, until

pytestmark = pytest.mark.faults

# A program with a child in its own session, whose own child is again in its own session; each writes its pid.
FAMILY = textwrap.dedent("""
    import os, signal, subprocess, sys, time
    folder, depth = sys.argv[1], int(sys.argv[2])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if depth:
        argv = [sys.executable, "-c", os.environ["FAMILY"], folder, str(depth - 1)]
        subprocess.Popen(argv, start_new_session=True)
    open(f"{folder}/{depth}.tmp", "w").write(str(os.getpid()))
    os.rename(f"{folder}/{depth}.tmp", f"{folder}/{depth}.pid")
    time.sleep(600)
""")
# A parent that starts the family, under a guardian or bare, and then waits to be killed.
PARENT = textwrap.dedent("""
    import os, subprocess, sys, time
    from base import children
    argv = [sys.executable, "-c", os.environ["FAMILY"], sys.argv[2], "2"]
    guarded = sys.argv[1] == "guarded"
    child = children.start(argv) if guarded else subprocess.Popen(argv, start_new_session=True)
    time.sleep(600)
""")
LEAVES_A_FAMILY = textwrap.dedent("""
    import os, subprocess, sys, time
    subprocess.Popen([sys.executable, "-c", os.environ["FAMILY"], sys.argv[1], "2"])
    time.sleep(600)
""")


def family(folder: Path):
    """The pids of the whole family, once each has written its own."""
    assert until(lambda: len(list(folder.glob("*.pid"))) == 3), "the family did not start in 5 s"
    return [int(file.read_text()) for file in sorted(folder.glob("*.pid"))]


@contextmanager
def parent_of_a_family(how: str, folder: Path) -> Iterator[tuple[subprocess.Popen, list[int]]]:
    env = os.environ | {"FAMILY": FAMILY}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, how, str(folder)], env=env, start_new_session=True)
    members = []
    try:
        members = family(folder)
        yield parent, members
    finally:
        parent.kill()
        parent.wait()
        for pid in members:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.rule("L10")
def test_a_killed_parent_takes_grandchildren_in_their_own_sessions_with_it(tmp_path):
    with parent_of_a_family("guarded", tmp_path) as (parent, members):
        members += [child.pid for child in psutil.Process(parent.pid).children()]  # the guardian too
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert until(lambda: not any(map(lives, members))), "a descendant outlived its parent by 5 s"


def test_without_the_guardian_they_live_on(tmp_path):
    with parent_of_a_family("bare", tmp_path) as (parent, members):
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert not until(lambda: not any(map(lives, members)), 1.0), "the fault does not show: this test proves nothing"


def test_what_the_program_leaves_behind_dies_with_it(tmp_path):
    argv = [sys.executable, "-c", LEAVES_A_FAMILY, str(tmp_path)]
    with children.start(argv, env=os.environ | {"FAMILY": FAMILY}) as child:
        members = family(tmp_path)
        child.send(signal.SIGTERM)
        assert child.wait(60) == -signal.SIGTERM
        assert not any(map(lives, members))


@pytest.mark.parametrize(("code", "ended"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 11)", -11)])
def test_the_guardian_ends_as_the_program_ended(code, ended):
    with children.start([sys.executable, "-c", f"import os, sys; {code}"], stderr=subprocess.DEVNULL) as child:
        assert child.wait(60) == ended


def test_a_program_that_does_not_exist_says_so():
    with children.start(["/nowhere/at-all"], stderr=subprocess.PIPE) as child:
        assert child.wait(60) == 127
        assert child.process.stderr.read() == b"guardian: cannot start /nowhere/at-all: No such file or directory\n"


def test_the_streams_are_the_programs_own():
    with children.start(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.process.stdin.write(b"through\n")
        child.process.stdin.close()
        assert child.process.stdout.read() == b"through\n"
        assert child.wait(60) == 0


def test_a_program_that_closes_its_output_is_seen_to_while_it_lives():
    argv = [sys.executable, "-c", "import os, time; os.close(1); os.close(2); time.sleep(600)"]
    with children.start(argv, stdout=subprocess.PIPE) as child:
        assert child.process.stdout.read() == b""
        assert child.returncode is None


WAITS_FOR_TERM = textwrap.dedent("""
    import signal, sys, time
    def asked(*_):
        print("asked", flush=True)
        if sys.argv[1] == "goes":
            sys.exit(0)
    signal.signal(signal.SIGTERM, asked)
    print("ready", flush=True)
    while True:
        time.sleep(600)
""")


@pytest.mark.parametrize(("kind", "ended"), [("goes", 0), ("stays", -signal.SIGKILL)])
def test_letting_go_asks_first_and_kills_after_the_grace_time(kind, ended):
    argv = [sys.executable, "-c", WAITS_FOR_TERM, kind]
    with children.start(argv, end=signal.SIGTERM, grace=2, stdout=subprocess.PIPE) as child:
        assert child.process.stdout.readline() == b"ready\n"
        child.let_go()
        assert child.process.stdout.readline() == b"asked\n"
        assert child.wait(60) == ended


def test_the_delay_keeps_a_program_alive_for_a_while_after_its_parent():
    argv = [sys.executable, "-c", WAITS_FOR_TERM, "goes"]
    with children.start(argv, end=signal.SIGTERM, delay=0.5, grace=30, stdout=subprocess.PIPE) as child:
        assert child.process.stdout.readline() == b"ready\n"
        began = time.monotonic()
        child.let_go()
        assert child.wait(60) == 0
        assert time.monotonic() - began >= 0.5


def test_a_terminals_ctrl_c_does_not_reach_the_program():
    with children.start([sys.executable, "-c", WAITS_FOR_TERM, "goes"], stdout=subprocess.PIPE) as child:
        assert child.process.stdout.readline() == b"ready\n"
        child.process.send_signal(signal.SIGINT)
        assert child.wait(0.3) is None


def test_no_other_child_holds_the_leash_of_the_first():
    argv = [sys.executable, "-c", WAITS_FOR_TERM, "goes"]
    with children.start(argv, stdout=subprocess.PIPE) as first:
        assert first.process.stdout.readline() == b"ready\n"
        with (
            subprocess.Popen(["sleep", "600"], close_fds=False) as careless,
            children.start(["sleep", "600"]),
        ):
            first.let_go()
            assert first.wait(60) == -signal.SIGKILL
            careless.kill()


def test_the_program_starts_with_three_open_files_and_default_signals():
    look = "import os, signal as s; print(sorted(os.listdir('/proc/self/fd')), s.getsignal(s.SIGINT).__name__)"
    with children.start([sys.executable, "-c", look], stdout=subprocess.PIPE) as child:
        # the fourth is the listing's own
        assert child.process.stdout.read() == b"['0', '1', '2', '3'] default_int_handler\n"


def test_async_code_starts_a_program_on_a_leash():
    async def talk():
        leash = children.leash(["cat"], end=signal.SIGTERM, grace=1)
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *leash.argv, pass_fds=leash.pass_fds, start_new_session=True, stdin=pipe, stdout=pipe
            )
        finally:
            leash.handed_over()
        process.stdin.write(b"hello\n")
        answer = await asyncio.wait_for(process.stdout.readline(), 5)
        leash.let_go()
        return answer, await asyncio.wait_for(process.wait(), 5)

    assert asyncio.run(talk()) == (b"hello\n", -signal.SIGTERM)


def test_only_root_can_run_a_program_as_another_account():
    with children.start(["id"], uid=65534, gid=65533, stdout=subprocess.PIPE) as child:
        said = child.process.stdout.read()
        code = child.process.wait(60)
    if os.geteuid() == 0:
        assert said.startswith(b"uid=65534") and b"gid=65533" in said and b"(root)" not in said
    else:
        assert (said, code) == (b"", 126)
