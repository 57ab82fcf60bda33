"""Who: people, tenants, what each person may do in them, and what was done."""

from enum import StrEnum
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.crypto import salted_hmac

from base import ids
from base.fields import TenantRow, one_of, word


class Role(StrEnum):
    """What a membership lets a person do; each role can do what the ones before it can."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    AUTHOR = "author"
    ADMIN = "admin"


class User(AbstractUser):
    """A person who can sign in. Known to the whole studio; what they see is decided by their memberships.

    Their sessions carry `sessions_ended` in their hash, so one more of it ends all that were opened before.
    """

    sessions_ended = models.PositiveIntegerField(default=0)
    last_how = models.CharField(max_length=64, blank=True, help_text="how they signed in last: link, password, …")

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """What Django asks of every session: it changes with the password, and when all sessions are ended."""
        whole = f"{self.password} {self.sessions_ended}"
        return salted_hmac("oz0 sessions of a person", whole, secret=secret, algorithm="sha256").hexdigest()


class Identity(models.Model):
    """Who a person is at the provider they sign in with: its address, and its own lasting name for them."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=300)
    subject = models.CharField(max_length=255)
    made_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="identity_once"),
        ]


class SignInTry(models.Model):
    """One try to sign in that failed, or is under way; `key` is a digest of whose name was typed, and from where."""

    key = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["key", "at"], name="sign_in_try_of")]


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


class Invitation(TenantRow):
    """A one-time address by which somebody joins a tenant. Only the SHA-256 of its token is kept."""

    token_hash = models.CharField(max_length=64, unique=True)
    role = word()
    email = models.EmailField(blank=True)
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("role", Role, "invitation_role"),
            models.CheckConstraint(
                condition=models.Q(accepted_at__isnull=True, accepted_by__isnull=True)
                | models.Q(accepted_at__isnull=False, accepted_by__isnull=False, revoked_at__isnull=True),
                name="invitation_accepted_or_revoked",
            ),
        ]


class ApiToken(TenantRow):
    """A credential of a program. It may start work and read; it never decides (RULES A5).

    One that nobody made is a harness session's: the studio made it, and ends it with the session (RULES G4, K6).
    """

    token_hash = models.CharField(max_length=64, unique=True)
    ends = models.CharField(max_length=8, blank=True, help_text="its last characters, to know it by")
    name = models.CharField(max_length=200)
    scopes = models.JSONField(default=list)
    agent = models.CharField(max_length=64, blank=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True, help_text="when it was last used, to the minute")
    patience = models.PositiveSmallIntegerField(
        default=45, help_text="seconds for which its client waits for a call to end (RULES G5)"
    )
    paced_until = models.DateTimeField(null=True, help_text="how far its questions reach (tenants.rules.pace)")
    as_person = models.BooleanField(default=False, help_text="of `oz0 login`: what it starts, its person has started")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(created_by__isnull=False) | (models.Q(scopes=["call"]) & ~models.Q(agent="")),
                name="api_token_of_nobody_only_calls",
            ),
        ]


class LoginAsk(models.Model):
    """A command that asks for a token, and what a person has said to that. It belongs to no tenant until then."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    code = models.CharField(max_length=16, help_text="what the command and the page show alike")
    challenge = models.CharField(max_length=64, help_text="SHA-256 of what only the command knows")
    machine = models.CharField(max_length=80, help_text="as it names itself")
    address = models.CharField(max_length=64)
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)
    allowed = models.BooleanField(default=False)
    person = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    place = models.ForeignKey(Tenant, null=True, on_delete=models.PROTECT, related_name="+")
    how = models.CharField(max_length=200, blank=True, help_text="how the person had signed in, and from where")
    taken_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(answered_at__isnull=True, person__isnull=True, place__isnull=True, allowed=False)
                | models.Q(answered_at__isnull=False, person__isnull=False, place__isnull=False),
                name="login_answered_by_someone",
            ),
            models.CheckConstraint(
                condition=models.Q(taken_at__isnull=True) | models.Q(allowed=True), name="login_taken_when_allowed"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["expires_at"], name="login_expiry")]


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
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "verb", "-seq"], name="audit_by_verb"),
            models.Index(fields=["tenant", "actor", "-seq"], name="audit_by_actor"),
            models.Index(fields=["tenant", "object", "-seq"], name="audit_by_object"),
        ]
