"""The tenant's vault: named secrets, sealed under the studio's own, opened only for the work that needs them.

To replace `OZ0_SECRET_KEY`: put the old one into `OZ0_OLD_SECRET_KEYS`, restart, and have `oz0 secrets reseal` seal
everything again.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings

from base import db, sealing
from tenants.models import Secret
from tenants.operations import audit
from tenants.rules.who import Actor

PLAIN: Final = "plain: "
"""How the names of values begin that are no secrets and are kept here only because their place is: a log level, a path.
They are not taken out of texts, where they would stand for ordinary words."""

OF_CALLS: Final = "call "
"""How the names begin of arguments that are kept for the attempts of one call. They are taken out of what came of that
call, not of every text."""

OF_CHANNELS: Final = "channel "
"""How the names begin of what notices to one channel are signed with."""

OF_HOOKS: Final = "hook "
"""How the names begin of what the events of one hook are signed with."""


class NoSecret(LookupError):
    """The vault holds no secret of this name, or it does not open. The message says what to do."""


def put(name: str, value: str) -> int:
    """Keep a secret under a name, replacing the one before; its new version. Demands an open write."""
    now, tenant = db.must_write(), db.writing_tenant()
    sealed = sealing.seal(value, about=_about(tenant, name), secret=settings.SECRET_KEY)
    row = Secret.objects.select_for_update(no_key=True).filter(name=name).first()
    if row is None:
        return Secret.objects.create(tenant_id=tenant, name=name, ciphertext=sealed, changed_at=now).version
    row.ciphertext, row.version, row.changed_at = sealed, row.version + 1, now
    row.save(update_fields=["ciphertext", "version", "changed_at"])
    return row.version


def get(tenant: UUID, name: str) -> str:
    """The secret of this name. Raises `NoSecret`. Demands an open read or write of the tenant."""
    row = Secret.objects.filter(name=name).first()
    if row is None:
        raise NoSecret(f"the vault has no secret {name!r}: enter it again")
    return _open(tenant, row, [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS])


def find(tenant: UUID, name: str) -> str | None:
    """The secret of this name, or None where there is none. Raises `NoSecret` when it does not open."""
    row = Secret.objects.filter(name=name).first()
    return None if row is None else _open(tenant, row, [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS])


def having(beginning: str) -> dict[str, str]:
    """What each secret has for a version, by name, of those whose name begins so. Demands an open read or write."""
    rows = Secret.objects.filter(name__startswith=beginning).values_list("name", "pk", "version")
    return {name: f"{pk}.{version}" for name, pk, version in rows}


def every(tenant: UUID) -> list[str]:
    """Every secret of the tenant, to take them out of a text. Raises `NoSecret` when one does not open.

    Demands an open read or write of the tenant.
    """
    accepted = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    rows = Secret.objects.exclude(name__startswith=PLAIN).exclude(name__startswith=OF_CALLS)
    return [_open(tenant, row, accepted) for row in rows]


def drop(name: str) -> None:
    """Forget a secret; none of this name is no error. Demands an open write."""
    db.must_write()
    Secret.objects.filter(name=name).delete()


def drop_all(beginning: str, *, before: datetime | None = None) -> None:
    """Forget every secret whose name begins so, only those last changed `before` when that is given."""
    db.must_write()
    rows = Secret.objects.filter(name__startswith=beginning)
    (rows if before is None else rows.filter(changed_at__lt=before)).delete()


def has(name: str) -> bool:
    """Whether there is a secret of this name. Demands an open read or write of the tenant."""
    return Secret.objects.filter(name=name).exists()


def seal_again(*, tenant: UUID, actor: Actor) -> int:
    """Seal every secret of a tenant under the studio's present secret; how many. Raises `NoSecret`.

    Their versions stay: the values are the same, so no session is replaced.
    """
    accepted = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    with db.write(tenant):
        rows = list(Secret.objects.select_for_update(no_key=True).order_by("pk"))
        for row in rows:
            plain = _open(tenant, row, accepted)
            row.ciphertext = sealing.seal(plain, about=_about(tenant, row.name), secret=settings.SECRET_KEY)
            row.save(update_fields=["ciphertext"])
        audit.record(actor, "secrets.resealed", "vault", after={"secrets": len(rows)})
    return len(rows)


def _open(tenant: UUID, row: Secret, accepted: Sequence[str]) -> str:
    try:
        return sealing.unseal(bytes(row.ciphertext), about=_about(tenant, row.name), accepted=accepted)
    except sealing.CannotOpen as error:
        raise NoSecret(f"{row.name}: {error}") from error


def _about(tenant: UUID, name: str) -> str:
    return f"{tenant}/{name}"
