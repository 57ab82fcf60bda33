"""Taking a plugin into the catalog, as one version named by its files."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from base import db, folders
from catalog import wake
from catalog.models import Agent, Arrival, Came, Listing, Plugin, PluginVersion, Skill, Stage, Tool, Transport
from catalog.operations import connections, linting
from catalog.operations.forgetting import folder_of
from catalog.queries.connections import named
from catalog.rules.answers import storable
from catalog.rules.kept_agents import as_json
from catalog.rules.manifest import MANIFEST, ToolSpec
from catalog.rules.plugins import PluginSpec, digest_of, read_plugin
from catalog.rules.problems import BadPlugin, Problem
from tenants.models import Gate
from tenants.operations import audit
from tenants.rules.who import Actor

CALLER_LISTS_IN: Final = timedelta(seconds=30)  # after which a node lists what a caller was about to


@dataclass(frozen=True, slots=True)
class Registered:
    """The version that is current now; `fresh` is false when it was current before.

    `before` is the number of the version that was current, empty without one. `renumbered` says that another version
    has the same number and other files.
    """

    version: UUID
    name: str
    digest: str
    fresh: bool
    number: str = ""
    before: str = ""
    renumbered: bool = False


def register(*, tenant: UUID, folder: Path, home: Path, actor: Actor, came: Came = Came.FOLDER) -> Registered:
    """Make the plugin in `folder` the current version of its name. The same files again change nothing.

    The files are copied to `plugins/` of the studio's state folder `home`, so that a version's servers run what was
    registered, whatever happens to `folder`. Raises `BadFolder` or `BadPlugin`, naming everything to mend.
    """
    return take(tenant=tenant, files=folders.files_of(folder), home=home, actor=actor, came=came)


def register_listed(*, tenant: UUID, files: Mapping[str, bytes], home: Path, actor: Actor) -> Registered:
    """The same of a folder's files whose servers the caller has listed: it keeps that next, and lints then.

    No node lists them meanwhile; one does where the caller is gone before it has.
    """
    return _take(tenant, files, home, actor, Came.FOLDER, "", listed_in=CALLER_LISTS_IN)


def take(
    *, tenant: UUID, files: Mapping[str, bytes], home: Path, actor: Actor, came: Came, file_name: str = ""
) -> Registered:
    """The same of files that were read already, as of the pack `file_name`.

    A pack is a release: one whose number another version has with other files is refused. A plugin that was removed is
    brought back.
    """
    found = _take(tenant, files, home, actor, came, file_name)
    linting.lint_version(tenant=tenant, version_id=found.version)
    return found


def _take(
    tenant: UUID,
    files: Mapping[str, bytes],
    home: Path,
    actor: Actor,
    came: Came,
    file_name: str,
    listed_in: timedelta = timedelta(0),
) -> Registered:
    spec = read_plugin(files)
    is_release = came in (Came.PACK, Came.UPLOAD)
    with db.read(tenant):
        known = PluginVersion.objects.filter(plugin__name=spec.name, digest=spec.digest).exists()
        twin = None if known else _same_number(spec)
    if twin is not None and is_release:
        said = f"{spec.version} is here already with other files (digest {twin.digest[:12]})"
        line = next((at for at, text in enumerate(files[MANIFEST].splitlines(), 1) if text.startswith(b"version")), 0)
        raise BadPlugin([Problem(MANIFEST, line, "version", said, "give this one a number of its own")])
    arrival = None if known else _arrival(files, actor, came, file_name)
    kept = folder_of(home, spec.name, spec.digest)
    folders.keep(files, kept)
    with db.write(tenant):
        found = _make_current(spec, tenant, kept, actor, arrival, listed_in)
    return replace(found, renumbered=twin is not None)


def take_up(*, tenant: UUID, plugin: str, digest: str, actor: Actor) -> Registered:
    """Make an earlier version of a plugin current again: its files as they were kept. A removed plugin comes back.

    A running job keeps the version that it started with. Raises `NoSuchVersion`, and `BadFolder` or `BadPlugin` when
    its files are not what they were, or another plugin has taken its names.
    """
    with db.read(tenant):
        version = PluginVersion.objects.filter(plugin__name=plugin, digest=digest).first()
        if version is None:
            raise NoSuchVersion(f"there is no version {digest[:12]} of {plugin}")
        arrival = Arrival.objects.filter(version=version).first()
    if not version.folder:
        raise folders.BadFolder(f"the files of version {version.version} were deleted. fix: import this version again")
    folder = Path(version.folder)
    paths = [path for path, *_ in arrival.files] if arrival is not None else list(folders.files_of(folder))
    try:
        files = {path: (folder / path).read_bytes() for path in paths}
    except OSError as error:
        raise folders.BadFolder(f"{error.filename}: {error.strerror}. fix: import this version again") from error
    if digest_of(files) != version.digest:
        raise folders.BadFolder(f"{folder}: its files were changed since. fix: remove it and import this version again")
    with db.write(tenant):
        found = _make_current(read_plugin(files), tenant, folder, actor, None)
    linting.lint_version(tenant=tenant, version_id=found.version)
    return found


class NoSuchVersion(LookupError):
    """A plugin has no version of this digest."""


def retire(plugin: str, actor: Actor) -> list[UUID] | None:
    """Take a plugin out of the catalog, with all its versions; returns its tools, or None when it is not there.

    The caller has the gate alone, and sees to what waits. Rows stay, so history keeps its names.
    """
    now = db.must_write()
    row = Plugin.objects.filter(name=plugin, removed_at__isnull=True).first()
    if row is None:
        return None
    row.removed_at, row.removed_by_id = now, actor.user_id
    row.save(update_fields=["removed_at", "removed_by"])
    versions = PluginVersion.objects.filter(plugin=row)
    current = versions.filter(stage=Stage.CURRENT).first()
    versions.update(stage=Stage.REMOVED)
    tools = Tool.objects.filter(plugin_version__plugin=row)
    tools.update(measure_due_at=None)
    Listing.objects.filter(tool__in=tools, current=True).update(current=False)
    was = {"digest": current.digest, "version": current.version} if current is not None else None
    audit.record(actor, "plugin.removed", f"plugin {plugin}", before=was)
    wake.changed()
    return list(tools.values_list("pk", flat=True))


def _same_number(spec: PluginSpec) -> PluginVersion | None:
    others = PluginVersion.objects.filter(plugin__name=spec.name, version=spec.version).exclude(digest=spec.digest)
    return others.order_by("-added_at").first()


def _make_current(
    spec: PluginSpec,
    tenant: UUID,
    kept: Path,
    actor: Actor,
    arrival: Arrival | None,
    listed_in: timedelta = timedelta(0),
) -> Registered:
    # one at a time: names are looked at, then taken
    Gate.objects.select_for_update(no_key=True).get(tenant_id=tenant)
    plugin, _ = Plugin.objects.get_or_create(tenant_id=tenant, name=spec.name)
    current = PluginVersion.objects.filter(plugin=plugin, stage=Stage.CURRENT).first()
    if current is not None and current.digest == spec.digest:
        return Registered(current.pk, spec.name, spec.digest, fresh=False, number=spec.version, before=spec.version)
    refuse_taken_names(spec, plugin)
    _connect(spec, actor)
    if current is not None:
        _retire(current)
    if plugin.removed_at is not None:
        plugin.removed_at = plugin.removed_by = None
        plugin.save(update_fields=["removed_at", "removed_by"])
        PluginVersion.objects.filter(plugin=plugin, stage=Stage.REMOVED).update(stage=Stage.OLD)
    version = PluginVersion.objects.filter(plugin=plugin, digest=spec.digest).first()
    due = db.must_write() + listed_in
    version = _take_up_again(version, kept, due) if version is not None else _add(spec, plugin, kept, arrival, due)
    audit.record(
        actor,
        "plugin.registered",
        f"plugin {spec.name}",
        before={"digest": current.digest, "version": current.version} if current else None,
        after={"digest": spec.digest, "version": spec.version},
    )
    wake.changed()
    before = current.version if current is not None else ""
    return Registered(version.pk, spec.name, spec.digest, fresh=True, number=spec.version, before=before)


def _arrival(files: Mapping[str, bytes], actor: Actor, came: Came, file_name: str) -> Arrival:
    """How this version came."""
    return Arrival(
        came=came,
        file_name=storable(file_name)[-200:],
        brought_by_id=actor.user_id,
        files=[[path, len(content), hashlib.sha256(content).hexdigest()] for path, content in sorted(files.items())],
    )


def _connect(spec: PluginSpec, actor: Actor) -> None:
    """See that each remote tool has its connection; make those whose whole, public address the plugin gives."""
    problems = []
    for tool in spec.tools:
        if not tool.url:
            continue
        row = named(connection_name(tool))
        try:
            if row is not None:
                connections.address_of(tool.url, row)
            else:
                connections.make_public(name=connection_name(tool), url=tool.url, actor=actor)
        except connections.BadConnection as error:
            fix = f"an admin makes or changes the connection {connection_name(tool)} at {connections.PAGE}"
            problems.append(Problem(MANIFEST, 0, tool.id, str(error), fix))
    if problems:
        raise BadPlugin(problems)


def connection_name(tool: ToolSpec) -> str:
    """The connection of a remote tool: the one it names, else one named like it."""
    return tool.connection or tool.id.lower()


def refuse_taken_names(spec: PluginSpec, plugin: Plugin) -> None:
    """Tools and agents are called by name in the whole tenant, so two plugins cannot share one (RULES C1).

    Demands an open read or write. Raises `BadPlugin`.
    """
    others = PluginVersion.objects.filter(stage=Stage.CURRENT).exclude(plugin=plugin)
    tools = Tool.objects.filter(plugin_version__in=others, slug__in=[tool.id for tool in spec.tools])
    agents = Agent.objects.filter(plugin_version__in=others, name__in=[agent.name for agent in spec.agents])
    problems = [
        *_taken("tool", tools.values_list("slug", "plugin_version__plugin__name")),
        *_taken("agent", agents.values_list("name", "plugin_version__plugin__name")),
    ]
    if problems:
        raise BadPlugin(problems)


def _taken(kind: str, found: Iterable[tuple[str, str]]) -> list[Problem]:
    return [
        Problem(MANIFEST, 0, name, f"plugin {owner} has {kind} {name} already", f"rename the {kind} here or there")
        for name, owner in found
    ]


def _retire(version: PluginVersion) -> None:
    version.stage = Stage.OLD
    version.save(update_fields=["stage"])
    Tool.objects.filter(plugin_version=version).update(measure_due_at=None)


def _take_up_again(version: PluginVersion, kept: Path, due: datetime) -> PluginVersion:
    version.stage, version.folder = Stage.CURRENT, str(kept)  # its files may have been deleted, and be here again
    version.save(update_fields=["stage", "folder"])
    Tool.objects.filter(plugin_version=version).update(measure_due_at=due, measure_failures=0)
    return version


def _add(spec: PluginSpec, plugin: Plugin, folder: Path, arrival: Arrival | None, due: datetime) -> PluginVersion:
    now, tenant = db.must_write(), plugin.tenant_id
    version = PluginVersion.objects.create(
        tenant_id=tenant,
        plugin=plugin,
        version=spec.version,
        digest=spec.digest,
        manifest=spec.manifest(),
        folder=str(folder),
        added_at=now,
    )
    if arrival is not None:
        arrival.tenant_id, arrival.version = tenant, version
        arrival.save(force_insert=True)
    Tool.objects.bulk_create(_tool(version, tool, due) for tool in spec.tools)
    Agent.objects.bulk_create(
        Agent(tenant_id=tenant, plugin_version=version, name=agent.name, definition=as_json(agent))
        for agent in spec.agents
    )
    Skill.objects.bulk_create(
        Skill(
            tenant_id=tenant,
            plugin_version=version,
            name=skill.name,
            description=skill.description,
            text=skill.text,
        )
        for skill in spec.skills
    )
    return version


def _tool(version: PluginVersion, tool: ToolSpec, due: datetime) -> Tool:
    return Tool(
        tenant_id=version.tenant_id,
        plugin_version=version,
        slug=tool.id,
        transport=Transport.URL if tool.url else Transport.SANDBOX if tool.sandbox else Transport.STDIO,
        argv=list(tool.argv),
        url=tool.url,
        connection=connection_name(tool) if tool.url else "",
        timeout=tool.timeout,
        cleanup=tool.cleanup,
        startup=tool.startup,
        slots=tool.slots,
        sensitive=tool.sensitive,
        sandbox=asdict(tool.sandbox) if tool.sandbox else None,
        check_text=dict(tool.check),
        measure_due_at=due,
    )
