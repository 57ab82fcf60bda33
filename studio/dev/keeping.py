"""What the studio of one plugin keeps of it over the days: its name, and the files of its last versions.

Imported once Django is set up.
"""

import shutil
from pathlib import Path
from typing import Final
from uuid import UUID

from base import db
from catalog.models import PluginVersion, Stage
from jobs.models import Job
from jobs.rules.states import JOB_FINAL

NAME: Final = "followed"  # the file in the state folder that holds the plugin's name
MOST: Final = 20  # versions whose files are kept, beside those that a job still runs with


def last_name(state: Path) -> str | None:
    """The name that the plugin had when it was loaded last."""
    try:
        return (state / NAME).read_text(encoding="utf-8")
    except OSError:
        return None


def keep_name(state: Path, name: str) -> None:
    """Keep it for the next save."""
    (state / NAME).write_text(name, encoding="utf-8")


def prune(tenant: UUID, plugin: str, state: Path) -> int:
    """Delete the files of the plugin's versions but the newest; how many were deleted.

    The studio is asked to load one every time an author saves. A version whose files are gone stays in the lists, and
    can be made current again by saving it again.
    """
    with db.read(tenant):
        busy = Job.objects.exclude(state__in=JOB_FINAL).values("agent__plugin_version")
        old = PluginVersion.objects.filter(plugin__name=plugin).exclude(stage=Stage.CURRENT).exclude(pk__in=busy)
        folders = [Path(folder) for folder in old.order_by("-added_at", "-pk").values_list("folder", flat=True)[MOST:]]
    there = [folder for folder in folders if folder.parent == state / "plugins" and folder.is_dir()]
    for folder in there:
        shutil.rmtree(folder, ignore_errors=True)
    return len(there)
