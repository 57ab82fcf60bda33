"""What an entry of a listing says, as far as its word counts now. Read under the gate (RULES A1, U1, MACHINES 2)."""

from collections.abc import Collection, Iterable

from catalog.models import EntryApproval, Function, Transport
from catalog.rules.kinds import Traits, traits_of

type Approved = Collection[tuple[str, str, str]]  # tool, function, digest of the entry


def traits_now(function: Function) -> Traits:
    """The traits of an entry. A remote server's count only while an approval of exactly this entry stands."""
    return traits_of(function.annotations, function.meta, trusted=is_trusted(function))


def is_trusted(function: Function) -> bool:
    """Whether an entry's word counts: a plugin's own server's does, a remote one's when a person approved it."""
    if function.tool.transport != Transport.URL:
        return True
    standing = EntryApproval.objects.filter(tool_slug=function.tool.slug, function=function.name)
    return standing.filter(entry_digest=function.entry_digest, withdrawn_at__isnull=True).exists()


def approved_entries(tools: Iterable[str]) -> Approved:
    """Every approval of these tools' entries that stands, read once for a page of many functions."""
    standing = EntryApproval.objects.filter(tool_slug__in=tools, withdrawn_at__isnull=True)
    return frozenset(standing.values_list("tool_slug", "function", "entry_digest"))


def trusted_by(function: Function, approved: Approved) -> bool:
    """The same as `is_trusted`, by approvals already read."""
    own = function.tool.transport != Transport.URL
    return own or (function.tool.slug, function.name, function.entry_digest) in approved


def traits_by(function: Function, approved: Approved) -> Traits:
    """The same as `traits_now`, by approvals already read."""
    return traits_of(function.annotations, function.meta, trusted=trusted_by(function, approved))
