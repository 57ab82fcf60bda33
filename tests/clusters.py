"""Migrated databases by copying: one is made for a whole run, and every service and studio of a test has a copy.

To make and migrate a cluster takes seconds of a core, to copy it a tenth of one.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import environ
from django.db import connections

from studio import embedded
from studio.embedded import kept
from studio.embedded.place import place_of
from tests.repo.tree import ROOT

TEMPLATE: Final = "CLUSTER_TEMPLATE"  # the environment's name for its state folder, one for all workers


def begin() -> None:
    """Choose where the template will be. The workers of this run take it over with the environment."""
    os.environ[TEMPLATE] = tempfile.mkdtemp(prefix="oz0-cluster-")


def forget() -> None:
    """Delete the template."""
    home = Path(os.environ.pop(TEMPLATE))
    place = place_of(home)
    place.remove(place.data / "pg")
    shutil.rmtree(home)


def seed(home: Path) -> Path:
    """Give a state folder a migrated cluster, as if `oz0 up` had been here before. Returns the folder."""
    template = Path(os.environ[TEMPLATE])
    with (template / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (template / "made").exists():
            with embedded.postgres(template, fsync=False) as server:
                # in a process of its own: who asks first may not be allowed to use this one's database
                env = os.environ | {"DATABASE_URL": server.url_owner}
                migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
                subprocess.run(migrate, cwd=ROOT, env=env, check=True)
            (template / "made").touch()
    data = place_of(template).data / "pg"
    subprocess.run(["cp", "-pR", str(data), str(place_of(home).data / "pg")], check=True)
    kept.save(home, kept.load(template))  # the passwords; each start writes its own addresses
    return home


@contextmanager
def connected(url: str) -> Iterator[None]:
    """This process's own queries go to this database."""
    django = connections["default"]
    before = dict(django.settings_dict)
    django.close()
    django.settings_dict.update({**environ.Env.db_url_config(url), "CONN_MAX_AGE": None})
    try:
        yield
    finally:
        django.close()
        django.settings_dict.clear()
        django.settings_dict.update(before)
