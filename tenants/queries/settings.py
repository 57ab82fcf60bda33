"""What a tenant has chosen for itself."""

from uuid import UUID

from tenants.models import Tenant


def no_self_approval(tenant: UUID) -> bool:
    """Whether nobody may approve a call of a job they started themselves (RULES A10)."""
    return bool(Tenant.objects.get(pk=tenant).settings.get("no_self_approval", False))
