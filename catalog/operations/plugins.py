"""Taking a plugin into the catalog, as one version named by its files."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

from base import db, folders
from catalog.models import Agent, Plugin, PluginVersion, Skill, Stage, Tool, Transport
from catalog.operations import connections, linting
from catalog.queries.connections import named
from catalog.rules.agents import as_json
from catalog.rules.manifest import MANIFEST, ToolSpec
from catalog.rules.plugins import PluginSpec, read_plugin
from catalog.rules.problems import BadPlugin, Problem
from tenants.models import Gate
from tenants.operations import audit
from tenants.rules.who import Actor


@dataclass(frozen=True, slots=True)
class Registered:
    """The version that is current now; `fresh` is false when it was current before."""

    version: UUID
    name: str
    digest: str
    fresh: bool


def register(*, tenant: UUID, folder: Path, home: Path, actor: Actor) -> Registered:
    """Make the plugin in `folder` the current version of its name. The same files again change nothing.

    The files are copied to `plugins/` of the studio's state folder `home`, so that a version's servers run what was
    registered, whatever happens to `folder`. Raises `BadFolder` or `BadPlugin`, naming everything to mend.
    """
    files = folders.files_of(folder)
    spec = read_plugin(files)
    kept = home / "plugins" / f"{spec.name}-{spec.digest[:16]}"
    folders.keep(files, kept)
    with db.write(tenant):
        Gate.objects.select_for_update(no_key=True).get(
            tenant_id=tenant
        )  # one at a time: names are looked at, then taken
        plugin, _ = Plugin.objects.get_or_create(tenant_id=tenant, name=spec.name)
        current = PluginVersion.objects.filter(plugin=plugin, stage=Stage.CURRENT).first()
        if current is not None and current.digest == spec.digest:
            return Registered(current.pk, spec.name, spec.digest, fresh=False)
        refuse_taken_names(spec, plugin)
        _connect(spec, actor)
        if current is not None:
            _retire(current)
        version = PluginVersion.objects.filter(plugin=plugin, digest=spec.digest).first()
        version = _take_up_again(version) if version is not None else _add(spec, plugin, kept)
        audit.record(
            actor,
            "plugin.registered",
            f"plugin {spec.name}",
            before={"digest": current.digest, "version": current.version} if current else None,
            after={"digest": spec.digest, "version": spec.version},
        )
    linting.lint_version(tenant=tenant, version_id=version.pk)
    return Registered(version.pk, spec.name, spec.digest, fresh=True)


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


def _take_up_again(version: PluginVersion) -> PluginVersion:
    version.stage = Stage.CURRENT
    version.save(update_fields=["stage"])
    Tool.objects.filter(plugin_version=version).update(measure_due_at=db.must_write(), measure_failures=0)
    return version


def _add(spec: PluginSpec, plugin: Plugin, folder: Path) -> PluginVersion:
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
    Tool.objects.bulk_create(_tool(version, tool) for tool in spec.tools)
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


def _tool(version: PluginVersion, tool: ToolSpec) -> Tool:
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
        measure_due_at=version.added_at,
    )
