"""What an entry of a listing says, as far as its word counts now. Read under the gate (RULES A1, C3, U1)."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urljoin
from uuid import UUID

from django.db.models import QuerySet

from catalog.models import Connection, EntryApproval, Function, Tool, Transport
from catalog.rules.kinds import Traits, traits_of

type Approved = Collection[tuple[UUID, str, str]]  # tool, function, digest of the entry


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose entries a tool's are. An approval counts for its own origin only, whatever else has the tool's name."""

    plugin: str
    connection: str
    address: str


def origins_of(tools: Collection[Tool]) -> dict[UUID, Origin]:
    """Where remote tools' entries come from now: the plugin of each, and the server that its connection leads to."""
    urls = dict(Connection.objects.filter(name__in={tool.connection for tool in tools}).values_list("name", "url"))
    plugins = Tool.objects.filter(pk__in=[tool.pk for tool in tools]).values_list("pk", "plugin_version__plugin__name")
    named = dict(plugins)
    return {
        tool.pk: Origin(named[tool.pk], tool.connection, urljoin(urls.get(tool.connection, ""), tool.url))
        for tool in tools
    }


def approvals_of(tool: Tool) -> QuerySet[EntryApproval]:
    """Every approval that was given for this tool as it is reached now, standing or not."""
    origin = origins_of([tool])[tool.pk]
    return EntryApproval.objects.filter(
        tool_slug=tool.slug, plugin=origin.plugin, connection=origin.connection, address=origin.address
    )


def approval_of(function: Function) -> UUID | None:
    """The standing approval of exactly this entry of a remote tool; None when there is none, or it needs none."""
    if function.tool.transport != Transport.URL:
        return None
    standing = approvals_of(function.tool).filter(function=function.name, withdrawn_at__isnull=True)
    return standing.filter(entry_digest=function.entry_digest).values_list("pk", flat=True).first()


def traits_now(function: Function) -> Traits:
    """The traits of an entry. A remote server's count only while an approval of exactly this entry stands."""
    own = function.tool.transport != Transport.URL
    trusted = own or approval_of(function) is not None
    return traits_of(function.annotations, function.meta, trusted=trusted)


def approved_entries(tools: Iterable[Tool]) -> Approved:
    """Every approval of these tools' entries that stands, read once for a page of many functions."""
    return frozenset((one.tool, one.function, one.digest) for one in _given(tools) if one.stands)


def ever_approved(tools: Iterable[Tool]) -> frozenset[tuple[UUID, str]]:
    """(tool, function) of what a person once approved for these tools, in whatever shape and standing or not."""
    return frozenset((one.tool, one.function) for one in _given(tools))


@dataclass(frozen=True, slots=True)
class _Given:
    tool: UUID
    function: str
    digest: str
    stands: bool


def _given(tools: Iterable[Tool]) -> list[_Given]:
    remote = [tool for tool in tools if tool.transport == Transport.URL]
    if not remote:
        return []
    by_place: dict[tuple[str, Origin], list[UUID]] = defaultdict(list)
    origins = origins_of(remote)
    for tool in remote:
        by_place[tool.slug, origins[tool.pk]].append(tool.pk)
    rows = EntryApproval.objects.filter(tool_slug__in={tool.slug for tool in remote})
    return [
        _Given(tool_id, row.function, row.entry_digest, row.withdrawn_at is None)
        for row in rows
        for tool_id in by_place.get((row.tool_slug, Origin(row.plugin, row.connection, row.address)), ())
    ]


def trusted_by(function: Function, approved: Approved) -> bool:
    """Whether an entry's word counts: a plugin's own server's does, a remote one's when a person approved it."""
    own = function.tool.transport != Transport.URL
    return own or (function.tool_id, function.name, function.entry_digest) in approved


def traits_by(function: Function, approved: Approved) -> Traits:
    """The same as `traits_now`, by approvals already read."""
    return traits_of(function.annotations, function.meta, trusted=trusted_by(function, approved))
