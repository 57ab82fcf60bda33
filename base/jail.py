"""Runs one command in a room of its own on this machine: other processes, files and networks are not there.

    python -I -S jail.py [--show PATH]… [--link PATH=TARGET]… [--work-in PATH] [--network] [--size BYTES]
        [--uid N --gid N] [--memory BYTES] [--limits-only] -- COMMAND…

The command sees the `--show` paths, which it cannot write, a `/proc` of its own processes, a few devices, and an
empty `/tmp` and `/scratch` of at most `--size` bytes each, which end with it. Without `--network` there is only a
loopback of its own. `--memory` bounds what each of its processes may write to; `--limits-only` does nothing else.
The command ends with its room: when it ends, is killed, or this program is, the kernel kills what is left in there.

Started by root, it makes the room as root and gives root up for `--uid`, because root in a user namespace is still
the machine's root to `/proc/sys`. Started by anybody else, it makes the room in a user namespace.

It is a file of its own that imports only the standard library; `base.sandbox` says what to call it with.
"""

# pathlib would double the start-up time
# ruff: noqa: PTH102, PTH103, PTH112, PTH120, PTH123, PTH211

import ctypes
import os
import resource
import signal
import struct
import sys
from typing import Final, NoReturn

MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
MNT_DETACH: Final = 0x2
MOUNT_SETATTR: Final = 442  # the system call's number, the same on every architecture since Linux 5.12
ATTR_RDONLY: Final = 0x1
AT_FDCWD: Final = -100
AT_RECURSIVE: Final = 0x8000
PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
NO_NEW_PRIVILEGES: Final = 38  # PR_SET_NO_NEW_PRIVS
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
NEW_ROOT: Final = "/tmp"  # noqa: S108  only a place to mount on, in a mount namespace of our own
MANY: Final = frozenset({"--show", "--link"})
ONE: Final = frozenset({"--work-in", "--size", "--uid", "--gid", "--memory"})
FLAGS: Final = frozenset({"--network", "--limits-only"})

_libc = ctypes.CDLL(None, use_errno=True)


class _Wishes:
    def __init__(self) -> None:
        self.many: dict[str, list[str]] = {name: [] for name in MANY}
        self.one: dict[str, str] = {}
        self.flags: set[str] = set()

    def number(self, name: str) -> int | None:
        return int(self.one[name]) if name in self.one else None


def main(argv: list[str]) -> int:
    """Run the command of `argv` in its room; the value is its exit code. Ends by the same signal when it was killed."""
    wishes, command = _parse(argv)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = wishes.number("--memory")
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    if "--limits-only" in wishes.flags:
        _exec(command)
    step = "part from the machine"
    try:
        own_user = wishes.number("--uid") is None
        _part(own_user=own_user, network="--network" in wishes.flags)
        ours, theirs = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)  # they are for the command, which gets them with us
        first = os.fork()
        if first == 0:
            step = "furnish its room"
            _furnish(wishes, own_user=own_user)
            step = "give up its rights"
            _lower(wishes)
            os.close(ours)
            _look_after(command, wishes.one.get("--work-in", "/"), theirs, nothing)
        os.close(theirs)
        _let_go_of_streams(nothing)
    except OSError as error:
        _fail(f"cannot {step}: {error.strerror or error}")
    told = os.read(ours, 4)
    _, status = os.waitpid(first, 0)
    return _leave(int.from_bytes(told, "little") if told else status)


def _parse(argv: list[str]) -> tuple[_Wishes, list[str]]:
    wishes, rest = _Wishes(), iter(argv)
    for word in rest:
        if word == "--":
            break
        if word in FLAGS:
            wishes.flags.add(word)
        elif word in MANY:
            wishes.many[word].append(next(rest, ""))
        elif word in ONE:
            wishes.one[word] = next(rest, "")
        else:
            _fail(f"unknown option {word}; known: {', '.join(sorted(MANY | ONE | FLAGS))}")
    command = list(rest)
    if not command:
        _fail("needs, after --, a command")
    return wishes, command


def _part(*, own_user: bool, network: bool) -> None:
    """Leave the machine's namespaces; the next process we start is the first of its own."""
    uid, gid = os.geteuid(), os.getegid()
    flags = os.CLONE_NEWNS | os.CLONE_NEWPID | os.CLONE_NEWIPC | os.CLONE_NEWUTS | os.CLONE_NEWCGROUP
    os.unshare(flags | (0 if network else os.CLONE_NEWNET) | (os.CLONE_NEWUSER if own_user else 0))
    if own_user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    if not network:
        _loopback_up()


def _furnish(wishes: _Wishes, *, own_user: bool) -> None:
    """Build the room's file system on a temporary one, and make it the only one there is."""
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    shown = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in wishes.many["--show"]}
    devices = {f"/dev/{name}": os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC) for name in DEVICES}
    size = f"size={wishes.one.get('--size', 256 * 2**20)}"
    _mount("tmpfs", NEW_ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=4m")
    for path in ("/tmp", "/scratch", "/dev/shm"):  # noqa: S108  the room's own
        os.makedirs(NEW_ROOT + path)
        _mount("tmpfs", NEW_ROOT + path, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,{size}")
    for path, source in shown.items():
        _bind(source, NEW_ROOT + path)
        _read_only(NEW_ROOT + path, MS_NOSUID | MS_NODEV)
    for path, source in devices.items():
        _bind(source, NEW_ROOT + path)
    for link in wishes.many["--link"]:
        path, _, target = link.partition("=")
        os.symlink(target, NEW_ROOT + path)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{NEW_ROOT}/dev/{name}")
    os.mkdir(f"{NEW_ROOT}/proc")
    _mount("proc", f"{NEW_ROOT}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if own_user:  # no room within the room; for the machine's root this setting would be the machine's
        _write(f"{NEW_ROOT}/proc/sys/user/max_user_namespaces", "0")
    _read_only(NEW_ROOT, 0, deep=False)
    os.chdir(NEW_ROOT)
    _checked(_libc.pivot_root(b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", MNT_DETACH), "umount2")
    os.chdir("/")


def _lower(wishes: _Wishes) -> None:
    """Keep no right that the command is not to have."""
    uid, gid = wishes.number("--uid"), wishes.number("--gid")
    if uid is not None and gid is not None:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    _checked(_libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    _checked(_libc.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "pdeathsig")


def _look_after(command: list[str], folder: str, line: int, nothing: int) -> NoReturn:
    """As the first process of the room: run the command, bury its orphans, tell how it ended, and end the room."""
    child = os.fork()
    if child == 0:
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.chdir(folder)
        except OSError as error:
            _fail(f"cannot work in {folder}: {error.strerror}")
        _exec(command)
    _let_go_of_streams(nothing)
    while True:
        pid, status = os.wait()
        if pid == child:
            os.write(line, status.to_bytes(4, "little"))
            os._exit(0)


def _exec(command: list[str]) -> NoReturn:
    try:
        os.execv(command[0], command)  # noqa: S606  running what the parent asked for is our purpose
    except OSError as error:
        _fail(f"cannot start {command[0]}: {error.strerror}")


def _leave(status: int) -> int:
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _bind(source: int, place: str) -> None:
    if os.path.isdir(f"/proc/self/fd/{source}"):
        os.makedirs(place, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
    _mount(f"/proc/self/fd/{source}", place, "", MS_BIND | MS_REC)


def _mount(source: str, place: str, kind: str, flags: int, data: str = "") -> None:
    done = _libc.mount(source.encode(), place.encode(), kind.encode() or None, flags, data.encode() or None)
    _checked(done, f"mount {place}")


def _read_only(place: str, more: int, *, deep: bool = True) -> None:
    attributes = struct.pack("=QQQQ", ATTR_RDONLY | more, 0, 0, 0)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    depth = AT_RECURSIVE if deep else 0
    done = _libc.syscall(MOUNT_SETATTR, AT_FDCWD, place.encode(), depth, buffer, ctypes.c_size_t(len(attributes)))
    _checked(done, f"make {place} read-only")


def _loopback_up() -> None:
    import fcntl
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sh22x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def _let_go_of_streams(nothing: int) -> None:
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _fail(text: str) -> NoReturn:
    os.write(2, f"jail: {text}\n".encode())
    os._exit(126)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
