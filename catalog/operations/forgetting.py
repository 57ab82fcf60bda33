"""Deleting for good what a removed plugin has left: its files and its values in the vault. History keeps its names."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from base import db
from catalog import wake
from catalog.models import Plugin, PluginVersion, Stage, Tool
from catalog.rules.secret_names import variables_of
from tenants.operations import audit, vault
from tenants.rules.who import Actor


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted: values of the vault, and the folders whose files are still to go (`delete_files`)."""

    values: int
    folders: tuple[Path, ...]


def forget(plugin: str, home: Path, actor: Actor) -> Forgotten | None:
    """Forget the files and the values of a removed plugin; None when there is no such one.

    The caller has the gate alone, knows that nothing of it runs, and deletes the files after the commit. Once more it
    finds what a crash left of them.
    """
    db.must_write()
    row = Plugin.objects.filter(name=plugin, removed_at__isnull=False).first()
    if row is None:
        return None
    versions = PluginVersion.objects.filter(plugin=row, stage=Stage.REMOVED)
    folders = {
        Path(folder) if folder else folder_of(home, plugin, digest)
        for folder, digest in versions.values_list("folder", "digest")
    }
    values = 0
    for slug in set(Tool.objects.filter(plugin_version__in=versions).values_list("slug", flat=True)):
        for beginning in (variables_of(plugin, slug), vault.PLAIN + variables_of(plugin, slug)):
            values += len(vault.having(beginning))
            vault.drop_all(beginning)
    had = versions.exclude(folder="").update(folder="")
    if had or values:
        audit.record(actor, "plugin.deleted", f"plugin {plugin}", after={"versions": had, "values": values})
        wake.changed()
    return Forgotten(values, tuple(sorted(folders)))


def delete_files(folders: Iterable[Path], home: Path) -> list[str]:
    """Delete these folders of `home`, except for those that another workspace's version is kept in.

    What could not be deleted is told, a sentence each. Not in a transaction.
    """
    left = []
    wanted = [folder for folder in folders if folder.is_dir()]
    with db.sweep():
        used = set(PluginVersion.objects.filter(folder__in=map(str, wanted)).values_list("folder", flat=True))
    for folder in wanted:
        if str(folder) in used:
            continue
        if folder.parent.resolve() != (home / "plugins").resolve():
            left.append(f"{folder} is not in the studio's state folder, so it was left")
            continue
        try:
            shutil.rmtree(folder)
        except OSError as error:
            left.append(f"{error.filename or folder}: {error.strerror}")
    return left


def folder_of(home: Path, plugin: str, digest: str) -> Path:
    """Where the files of a plugin's version are kept."""
    return home / "plugins" / f"{plugin}-{digest[:16]}"
