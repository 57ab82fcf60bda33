"""Who: people, tenants, what each person may do in them, and what was done."""

from enum import StrEnum
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models

from base import ids
from base.fields import TenantRow, one_of, word


class Role(StrEnum):
    """What a membership lets a person do; each role can do what the ones before it can."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    AUTHOR = "author"
    ADMIN = "admin"


class User(AbstractUser):
    """A person who can sign in. Known to the whole studio; what they see is decided by their memberships."""


class SignInLink(models.Model):
    """A one-time address that signs a person in. Only the SHA-256 of its token is kept."""

    token_hash = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class Tenant(models.Model):
    """A workspace whose rows no other sees."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    settings = models.JSONField(default=dict)


class Gate(models.Model):
    """One row per tenant that claims share and changes of switches, policy and approvals take alone (MACHINES 2)."""

    tenant = models.OneToOneField(Tenant, primary_key=True, on_delete=models.PROTECT, related_name="gate")
    version = models.BigIntegerField(default=0)


class Membership(TenantRow):
    """That a person belongs to a tenant, and as what."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = word(default=Role.VIEWER)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_once"),
            one_of("role", Role, "membership_role"),
        ]


class ApiToken(TenantRow):
    """A credential of a program. It may start work and read; it never decides (RULES A5)."""

    token_hash = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    scopes = models.JSONField(default=list)
    agent = models.CharField(max_length=64, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)


class Secret(TenantRow):
    """A named value of the vault, encrypted; `version` changes with it, so sessions that used the old one end."""

    name = models.CharField(max_length=200)
    ciphertext = models.BinaryField()
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "name"], name="secret_once"),
        ]


class AuditHead(models.Model):
    """The end of a tenant's audit log, locked last of all (MACHINES 2)."""

    tenant = models.OneToOneField(Tenant, primary_key=True, on_delete=models.PROTECT, related_name="audit_head")
    seq = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, default="")


class AuditEntry(TenantRow):
    """One thing a person or the system decided or changed. Append-only, each entry hashed over the one before."""

    seq = models.BigIntegerField()
    at = models.DateTimeField()
    actor = models.CharField(max_length=200)
    how = models.CharField(max_length=200, help_text="how the actor signed in, and from where")
    verb = models.CharField(max_length=64)
    object = models.CharField(max_length=200)
    before: "models.JSONField[Any, Any]" = models.JSONField(null=True)
    after: "models.JSONField[Any, Any]" = models.JSONField(null=True)
    note = models.TextField(blank=True)
    prev_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "seq"], name="audit_seq_once"),
        ]
