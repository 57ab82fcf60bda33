"""What an entry of a listing says, as far as its word counts now. Read under the gate (RULES A1, U1, MACHINES 2)."""

from catalog.models import EntryApproval, Function, Transport
from catalog.rules.kinds import Traits, traits_of


def traits_now(function: Function) -> Traits:
    """The traits of an entry. A remote server's count only while an approval of exactly this entry stands."""
    return traits_of(function.annotations, function.meta, trusted=is_trusted(function))


def is_trusted(function: Function) -> bool:
    """Whether an entry's word counts: a plugin's own server's does, a remote one's when a person approved it."""
    if function.tool.transport != Transport.URL:
        return True
    standing = EntryApproval.objects.filter(tool_slug=function.tool.slug, function=function.name)
    return standing.filter(entry_digest=function.entry_digest, withdrawn_at__isnull=True).exists()
