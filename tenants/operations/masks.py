"""What takes a tenant's secrets out of a text before it is kept, sent, logged or exported (RULES A14)."""

from typing import Any, Final
from uuid import UUID

from base import db, prepared
from base.masking import Mask
from tenants.operations import vault

REMEMBERED: Final = 64  # tenants whose mask a process keeps
MARKER: Final = "[not kept: secrets could not be taken out of it]"
_STANDING: Final = f"""
SELECT count(*), coalesce(sum(version), 0), max(changed_at) FROM tenants_secret
WHERE NOT starts_with(name, '{vault.OF_CALLS}')
"""  # noqa: S608 - only words of ours
_kept: dict[UUID, tuple[object, Mask]] = {}


class CannotMask(Exception):
    """Secrets cannot be taken out now: nothing of what they may stand in is to be kept. The message says why."""


def of(tenant: UUID) -> Mask:
    """The mask of every secret in the tenant's vault, as it is now. Demands an open read or write of the tenant.

    Raises `CannotMask`. Opening the vault anew for each text would cost more than the text does.
    """
    standing = prepared.fetch_one(_STANDING)
    found = _kept.get(tenant)
    if found is not None and found[0] == standing:
        return found[1]
    try:
        mask = Mask(vault.every(tenant))
    except db.GONE:
        raise
    except Exception as error:  # whatever it is: without the secrets nothing can be shown to be free of them
        raise CannotMask(str(error)) from error
    while len(_kept) >= REMEMBERED:
        _kept.pop(next(iter(_kept)), None)
    _kept[tenant] = (standing, mask)
    return mask


def mapped(value: Any, mask: Mask) -> Any:
    """A JSON value, whole, with every text in it masked, names of fields too."""
    if isinstance(value, str):
        return mask.uncut(value)
    if isinstance(value, dict):
        return {mask.uncut(str(name)): mapped(part, mask) for name, part in value.items()}
    return [mapped(part, mask) for part in value] if isinstance(value, list | tuple) else value
