"""What exists: plugins and their versions, tools, measured listings, functions, agents, policy and kill switches."""

from enum import StrEnum
from typing import ClassVar, Final

from django.db import models
from django.db.models import Q

from base.fields import TenantRow, one_of, word
from catalog.rules.findings import Severity
from catalog.rules.switching import Mode as Mode
from catalog.rules.switching import Scope as Scope


class Stage(StrEnum):
    """Which version of a plugin new jobs get."""

    CURRENT = "current"
    CANARY = "canary"
    OLD = "old"
    REMOVED = "removed"  # its plugin left the catalog: nothing of it starts any more


class Came(StrEnum):
    """How a version's files came into the catalog."""

    FOLDER = "folder"  # from a folder of this machine
    PACK = "pack"  # from a pack, by a command
    UPLOAD = "upload"  # from a pack, in a browser
    IMPORT = "import"  # made of an entry in a client's list


class Transport(StrEnum):
    """How a tool's server is reached."""

    STDIO = "stdio"  # one server shared by a tenant's calls
    SANDBOX = "sandbox"  # one server per job
    URL = "url"  # a remote server


class Credential(StrEnum):
    """What a connection shows to its server. The value lies in the tenant's vault."""

    NONE = "none"
    BEARER = "bearer"  # Authorization: Bearer …
    HEADER = "header"  # a header of the server's own
    OAUTH = "oauth"  # a bearer token that somebody signed in for


class Standing(StrEnum):
    """Whether somebody is signed in to a connection."""

    OUT = "out"
    IN = "in"
    AGAIN = "again"  # the grant is over: a person has to sign in again


class Plugin(TenantRow):
    """A folder of tools, agents and skills that belong together."""

    name = models.CharField(max_length=64)
    removed_at = models.DateTimeField(null=True)
    removed_by = models.ForeignKey("tenants.User", null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "name"], name="plugin_once"),
        ]


class PluginVersion(TenantRow):
    """One state of a plugin's files, named by their digest. Rows of a version never change but for its stage."""

    plugin = models.ForeignKey(Plugin, on_delete=models.PROTECT, related_name="versions", db_constraint=False)
    version = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    manifest = models.JSONField()
    folder = models.TextField()
    stage = word(default=Stage.CURRENT)
    added_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["plugin", "digest"], name="plugin_version_once"),
            models.UniqueConstraint(fields=["plugin"], condition=Q(stage="current"), name="plugin_one_current"),
            one_of("stage", Stage, "plugin_version_stage"),
        ]


class Arrival(TenantRow):
    """How a version came, and who brought which files. Never changed.

    `files` holds path, size and SHA-256 of each. It is a table of its own since calls read the rows of versions.
    """

    version = models.OneToOneField(PluginVersion, on_delete=models.PROTECT, related_name="arrival", db_constraint=False)
    came = word()
    file_name = models.CharField(max_length=200, blank=True)
    brought_by = models.ForeignKey("tenants.User", null=True, on_delete=models.PROTECT, related_name="+")
    files = models.JSONField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [one_of("came", Came, "arrival_came")]


class Tool(TenantRow):
    """One MCP server of a plugin version. `timeout`, `cleanup` and `startup` are seconds (MACHINES 3)."""

    plugin_version = models.ForeignKey(
        PluginVersion, on_delete=models.PROTECT, related_name="tools", db_constraint=False
    )
    slug = models.CharField(max_length=48)
    transport = word(default=Transport.STDIO)
    argv = models.JSONField(default=list)
    url = models.TextField(blank=True)
    connection = models.CharField(max_length=64, blank=True, help_text="the name of the connection of a remote server")
    timeout = models.FloatField(default=60)
    cleanup = models.FloatField(default=6)
    startup = models.FloatField(default=60)
    slots = models.PositiveIntegerField(default=16)
    sensitive = models.BooleanField(default=False)
    sandbox = models.JSONField(null=True, help_text="what a sandboxed tool asks for, null for every other")
    isolation = models.CharField(
        max_length=32,
        blank=True,
        help_text="what kept its server apart when last listed; empty unless sandboxed",
    )
    check_text = models.JSONField(default=dict, help_text="per function: how a person finds out whether it happened")
    measure_due_at = models.DateTimeField(null=True, help_text="when a node should read its listing next")
    measure_failures = models.PositiveIntegerField(default=0)
    server_generation = models.PositiveIntegerField(
        default=0, help_text="grows when its servers are to be started anew"
    )
    down_reason = models.TextField(blank=True, help_text="why its server could not be listed, empty when it could")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["plugin_version", "slug"], name="tool_once"),
            one_of("transport", Transport, "tool_transport"),
            models.CheckConstraint(condition=Q(timeout__gt=0, timeout__lte=3600), name="tool_timeout_range"),
            models.CheckConstraint(
                condition=Q(transport="sandbox", sandbox__isnull=False)
                | (~Q(transport="sandbox") & Q(sandbox__isnull=True)),
                name="tool_sandboxed_or_not",
            ),
            models.CheckConstraint(condition=Q(cleanup__gte=0, startup__gt=0, slots__gt=0), name="tool_positive"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["measure_due_at"], condition=Q(measure_due_at__isnull=False), name="tool_measure_due"),
        ]


class Connection(TenantRow):
    """How a remote server is reached: its address, what it is shown, and what else than public hosts it may be.

    `allowed` are `host:port` entries. `protocol` is what the server was found to speak, once; `credential_version`
    changes with anything a session depends on, so that sessions are replaced.
    """

    name = models.CharField(max_length=64)
    url = models.TextField()
    allowed = models.JSONField(default=list)
    protocol = models.CharField(max_length=32, blank=True)
    credential = word(default=Credential.NONE)
    header = models.CharField(max_length=100, blank=True)
    credential_version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "name"], name="connection_once"),
            one_of("credential", Credential, "connection_credential"),
            models.CheckConstraint(
                condition=(Q(credential="header") & ~Q(header="")) | (~Q(credential="header") & Q(header="")),
                name="connection_names_its_header",
            ),
        ]


class SignIn(TenantRow):
    """How a connection is signed in to by OAuth. Its tokens and the client's secret lie in the tenant's vault.

    `provider` is what the authorisation server said of itself (`catalog.rules.oauth.Provider`). `grant` counts
    every change of the tokens: a refresh that began with another one changes nothing. `granted_at` is when the
    tokens were asked for, `expires_at` None when the provider did not say.
    """

    connection = models.OneToOneField(Connection, on_delete=models.CASCADE, related_name="sign_in", db_constraint=False)
    client_id = models.TextField(blank=True)
    client_method = word(blank=True)
    client_entered = models.BooleanField(default=False, help_text="an admin entered the client; else it was registered")
    return_to = models.TextField(blank=True, help_text="the return address that the client was registered with")
    wanted = models.TextField(blank=True, help_text="scopes to ask for; empty: those the server names")
    provider = models.JSONField(default=dict)
    standing = word(default=Standing.OUT)
    scopes = models.TextField(blank=True)
    grant = models.PositiveIntegerField(default=0)
    signed_in_by = models.ForeignKey("tenants.User", null=True, on_delete=models.PROTECT, related_name="+")
    signed_in_at = models.DateTimeField(null=True)
    granted_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    refresh_due_at = models.DateTimeField(null=True)
    refreshing_until = models.DateTimeField(null=True, help_text="while a node asks for new tokens, no other does")
    failures = models.PositiveIntegerField(default=0, help_text="refreshes that failed in a row")
    trouble = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("standing", Standing, "sign_in_standing"),
            models.CheckConstraint(
                condition=Q(standing="in", granted_at__isnull=False)
                | (~Q(standing="in") & Q(expires_at__isnull=True, refresh_due_at__isnull=True)),
                name="sign_in_has_a_grant",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["refresh_due_at"], condition=Q(refresh_due_at__isnull=False), name="sign_in_due"),
        ]


class Listing(TenantRow):
    """What a tool's own server listed at one time."""

    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="listings", db_constraint=False)
    digest = models.CharField(max_length=64)
    measured_at = models.DateTimeField()
    protocol = models.CharField(max_length=32)
    server_name = models.CharField(max_length=200)
    server_version = models.CharField(max_length=200)
    can_cancel = models.BooleanField(default=True)
    can_report = models.BooleanField(default=True)
    current = models.BooleanField(default=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tool"], condition=Q(current=True), name="listing_one_current"),
        ]


class Function(TenantRow):
    """One entry of a listing, with what follows from its annotations. Never changed: a new listing has new rows."""

    listing = models.ForeignKey(Listing, on_delete=models.PROTECT, related_name="functions", db_constraint=False)
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    name = models.CharField(max_length=128)
    model_name = models.CharField(max_length=64, help_text="what the model calls it: <tool>__<function>")
    title = models.TextField(blank=True)
    description = models.TextField(blank=True)
    input_schema = models.JSONField()
    output_schema = models.JSONField(null=True)
    annotations = models.JSONField()
    meta = models.JSONField()
    kind = word()
    read_only = models.BooleanField()
    honours_key = models.BooleanField()
    idempotent = models.BooleanField()
    open_world = models.BooleanField()
    retry_safe = models.BooleanField()
    tokens = models.PositiveIntegerField(null=True)
    entry_digest = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["listing", "name"], name="function_once"),
        ]


class LintReport(TenantRow):
    """That a plugin version was linted with these listings of its tools. With others it is linted anew."""

    plugin_version = models.OneToOneField(
        PluginVersion, on_delete=models.PROTECT, related_name="lint_report", db_constraint=False
    )
    linted = models.CharField(max_length=64, help_text="the digest of its files, its listings and what lint looks for")
    errors = models.PositiveIntegerField()
    warnings = models.PositiveIntegerField()
    made_at = models.DateTimeField()


class LintFinding(TenantRow):
    """One thing that lint found of a plugin version. `tool` and `function` are empty where it is of neither."""

    plugin_version = models.ForeignKey(
        PluginVersion, on_delete=models.PROTECT, related_name="lint_findings", db_constraint=False
    )
    place = models.PositiveIntegerField(help_text="where lint told it: errors first")
    severity = word()
    code = models.CharField(max_length=64)
    tool = models.CharField(max_length=48, blank=True)
    function = models.CharField(max_length=128, blank=True)
    file = models.TextField()
    line = models.PositiveIntegerField(default=0)
    key = models.TextField(blank=True)
    message = models.TextField()
    fix = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["plugin_version", "place"], name="lint_finding_once"),
            one_of("severity", Severity, "lint_finding_severity"),
        ]


class ServerLog(TenantRow):
    """The last that a tool's servers on one node said beside the protocol, without secrets (RULES C8, A14).

    `node` is a process of `jobs`; its name stays here when it is gone. The newest few rows of a tool are kept.
    """

    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    node = models.UUIDField()
    node_name = models.CharField(max_length=200)
    lines = models.JSONField(help_text="each with its source: stderr, stdout, log or oz0")
    written_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tool", "node"], name="server_log_once"),
        ]


class EntryApproval(TenantRow):
    """That a person approved one exact entry of a remote listing (RULES U1, C3).

    `plugin`, `connection` and `address` say which server they were shown: another one of the tool's name, or the same
    tool reached elsewhere, was not approved by it.
    """

    tool_slug = models.CharField(max_length=48)
    plugin = models.CharField(max_length=64, blank=True)
    connection = models.CharField(max_length=64, blank=True)
    address = models.TextField(blank=True)
    function = models.CharField(max_length=128)
    entry_digest = models.CharField(max_length=64)
    approved_by = models.ForeignKey("tenants.User", on_delete=models.PROTECT, related_name="+")
    approved_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True)


class Agent(TenantRow):
    """One agent of a plugin version: its instructions, grants and limits, as its file says."""

    plugin_version = models.ForeignKey(
        PluginVersion, on_delete=models.PROTECT, related_name="agents", db_constraint=False
    )
    name = models.CharField(max_length=64)
    definition = models.JSONField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["plugin_version", "name"], name="agent_once"),
        ]


class Skill(TenantRow):
    """One skill of a plugin version: text an agent may read."""

    plugin_version = models.ForeignKey(
        PluginVersion, on_delete=models.PROTECT, related_name="skills", db_constraint=False
    )
    name = models.CharField(max_length=64)
    description = models.TextField(blank=True)
    text = models.TextField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["plugin_version", "name"], name="skill_once"),
        ]


class PolicyVersion(TenantRow):
    """A tenant's ordered rules at one time. Never changed, which PostgreSQL keeps; the highest number is in force."""

    number = models.PositiveIntegerField()
    rules = models.JSONField()
    made_by = models.ForeignKey("tenants.User", null=True, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    note = models.TextField(blank=True)
    restores = models.PositiveIntegerField(null=True, help_text="the older version whose rules these are")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "number"], name="policy_number_once"),
        ]


_NOTHING: Final = models.Value({}, models.JSONField())


class KillSwitch(TenantRow):
    """That everything under `scope` and `target` is stopped, or paused. `target` is empty for the tenant, else a name.

    A function's target is `<tool>.<function>`. A line of SQL that names no mode kills.
    """

    scope = word()
    target = models.CharField(max_length=200, blank=True)
    mode = word(default=Mode.KILL, db_default=Mode.KILL.value)
    found = models.JSONField(default=dict, db_default=_NOTHING, help_text="the work it covered at first, counted")
    reason = models.TextField(blank=True)
    on_at = models.DateTimeField()
    on_by = models.ForeignKey("tenants.User", null=True, on_delete=models.PROTECT, related_name="+")
    off_at = models.DateTimeField(null=True)
    off_by = models.ForeignKey("tenants.User", null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "scope", "target", "mode"], condition=Q(off_at__isnull=True), name="switch_once"
            ),
            one_of("scope", Scope, "switch_scope"),
            one_of("mode", Mode, "switch_mode"),
            models.CheckConstraint(
                condition=(Q(scope=Scope.TENANT.value) & Q(target="")) | (~Q(scope=Scope.TENANT.value) & ~Q(target="")),
                name="switch_target_of_scope",
            ),
        ]
