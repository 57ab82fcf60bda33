"""Taking servers of a client's list into the catalog: each becomes a plugin with one tool (RULES C7, A12)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from uuid import UUID

from base import db
from base.addresses import Refused, literal, read_url
from catalog.models import Came, Connection, Credential, Plugin, PluginVersion, Stage, Tool
from catalog.operations import connections, listings, plugins, variables
from catalog.queries.connections import named
from catalog.rules.manifest import MANIFEST
from catalog.rules.mcp_servers import IMPORTED, Server, agent_files, manifest_of
from catalog.rules.plugins import digest_of, read_plugin
from catalog.rules.problems import BadPlugin, Problem
from tenants.operations import vault
from tenants.rules.who import Actor

BEARER: Final = "bearer "


@dataclass(frozen=True, slots=True)
class Taken:
    """What became, or would become, of one server. `done` is `added`, `changed`, `kept` or `left out`."""

    server: Server
    done: str
    allowed: Sequence[str] = ()
    problems: Sequence[Problem] = ()


@dataclass(frozen=True, slots=True)
class _Compared:
    new: bool
    files: bool
    variables: bool
    connection: bool

    @property
    def done(self) -> str:
        """What importing it does."""
        if self.new:
            return "added"
        return "changed" if self.files or self.variables or self.connection else "kept"


def take_in(*, tenant: UUID, server: Server, file: str, home: Path, actor: Actor, write: bool) -> Taken:
    """Bring the catalog to what the server's entry says; without `write` only find out what that would do.

    Entries with problems are left out. The same entry again changes nothing. Undeclared functions stay undeclared, and
    what a remote server says of itself still waits for a person's approval. `home` is the studio's state folder.
    """
    try:
        if server.problems:
            raise BadPlugin(server.problems)
        allowed = _allowed(server)
        with db.read(tenant):
            compared = _compare(tenant, server, file, allowed)
        if write and compared.done != "kept":
            _write(tenant, server, allowed, compared, home, actor)
        elif write:  # what it runs lies outside the catalog and may be another by now
            listings.list_anew(tenant=tenant, tool=server.id, actor=actor)
    except BadPlugin as error:
        return Taken(server, "left out", problems=tuple(_of_the_list(one, server, file) for one in error.problems))
    except (Refused, connections.BadConnection) as error:
        key = f"{server.name}.{'headers' if server.headers and isinstance(error, connections.BadConnection) else 'url'}"
        problem = Problem(file, server.line, key, str(error), "mend it and import again")
        return Taken(server, "left out", problems=(problem,))
    return Taken(server, compared.done, allowed)


def grant(*, tenant: UUID, agent: str, tools: Sequence[str], home: Path, actor: Actor) -> bool:
    """Make the agent outside that may call everything of these tools, in a plugin of its own name; False when it is so.

    Raises `BadPlugin` when a plugin of that name was made another way, or the name is none.
    """
    files = agent_files(agent, tools)
    read_plugin(files)
    with db.read(tenant):
        current = PluginVersion.objects.filter(plugin__name=agent, stage=Stage.CURRENT).first()
        of_a_server = Tool.objects.filter(plugin_version=current).exists() if current is not None else False
    if current is not None and (current.version != IMPORTED or of_a_server):
        fix = "choose another name: importing never replaces what was made another way"
        raise BadPlugin([Problem(MANIFEST, 1, "name", f"there is a plugin {agent} that is no such agent", fix)])
    if current is not None and current.digest == digest_of(files):
        return False
    plugins.take(tenant=tenant, files=files, home=home, actor=actor, came=Came.IMPORT)
    return True


def _write(tenant: UUID, server: Server, allowed: Sequence[str], compared: _Compared, home: Path, actor: Actor) -> None:
    """Each step is complete in itself and changes nothing the second time, so a crash between them costs a repeat."""
    if compared.connection:
        with db.read(tenant):
            there = named(server.id)
        save = connections.make if there is None else connections.change
        given = _given(server, there)
        save(tenant=tenant, name=server.id, url=server.url, allowed=allowed, given=given, actor=actor)
    if compared.variables:
        with db.write(tenant):
            variables.keep(plugin=server.id, tool=server.id, wanted=server.env, actor=actor)
    if compared.files:
        with TemporaryDirectory(prefix="oz0-import-") as folder:
            (Path(folder) / MANIFEST).write_bytes(manifest_of(server))
            plugins.register(tenant=tenant, folder=Path(folder), home=home, actor=actor, came=Came.IMPORT)


def _compare(tenant: UUID, server: Server, file: str, allowed: Sequence[str]) -> _Compared:
    files = {MANIFEST: manifest_of(server)}
    spec = read_plugin(files)
    current = PluginVersion.objects.filter(plugin__name=server.id, stage=Stage.CURRENT).first()
    row = named(server.id) if server.url else None
    ours = row is None or (row.credential == _given(server, None).kind and _reached_so(tenant, server, row, allowed))
    if (current is None and not ours) or (current is not None and current.version != IMPORTED):
        kind = "plugin" if current is not None else "connection"
        fix = "rename the server in the list: importing never replaces what was made another way"
        said = f"there is a {kind} {server.id} that was not imported"
        raise BadPlugin([Problem(file, server.line, server.name, said, fix)])
    if (plugin := Plugin.objects.filter(name=server.id).first()) is None:
        plugin = Plugin(tenant_id=tenant, name=server.id)
    plugins.refuse_taken_names(spec, plugin)
    return _Compared(
        new=current is None,
        files=current is None or current.digest != digest_of(files),
        variables=bool(variables.unlike(tenant, plugin=server.id, tool=server.id, wanted=server.env)),
        connection=bool(server.url) and (row is None or not _reached_so(tenant, server, row, allowed)),
    )


def _reached_so(tenant: UUID, server: Server, row: Connection, allowed: Sequence[str]) -> bool:
    """Whether a connection is what the list says. What an admin added to it stays: more allowed, a credential."""
    if row.url != read_url(server.url).url or not set(allowed) <= set(row.allowed):
        return False
    if not server.headers:
        return True
    given = _given(server, None)
    try:
        same = vault.get(tenant, connections.secret_name(row)) == given.value
    except vault.NoSecret:
        same = False
    return same and (row.credential, row.header) == (given.kind, given.header)


def _given(server: Server, row: Connection | None) -> connections.Given:
    """The credential in the one header; without one the credential that is there, or none."""
    for name, value in server.headers.items():
        if name.lower() == "authorization" and value.lower().startswith(BEARER):
            return connections.Given(Credential.BEARER, value[len(BEARER) :].strip())
        return connections.Given(Credential.HEADER, value, name)
    return connections.Given(Credential(row.credential), None, row.header) if row is not None else connections.Given()


def _allowed(server: Server) -> list[str]:
    """The entry of the allow-list that a server on this machine or a private network needs, as its list names it."""
    if not server.url:
        return []
    target = read_url(server.url)
    address = literal(target.host)
    private = target.host == "localhost" or (address is not None and not address.is_global)
    return [target.place] if private or target.scheme == "http" else []


def _of_the_list(problem: Problem, server: Server, file: str) -> Problem:
    """A problem of the plugin that was made of an entry, told of that entry."""
    if problem.file == file:
        return problem
    return Problem(file, server.line, server.name, problem.message, "rename or mend the server in the list")
