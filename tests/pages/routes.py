"""Every address of the studio with an example of it, taken from the URL table itself.

What an address names is told by where it stands: add a line to `KINDS` when a new kind of thing gets pages, and to
`WRITES` when an address takes a form: who may send it at least, and what a form of it holds.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from approvals.models import Way
from approvals.operations import channels
from base import db, ids
from catalog.models import Connection, Credential, PluginVersion, PolicyVersion, Skill
from catalog.operations import connections
from catalog.operations.connections import Given
from catalog.rules.switching import Mode, Scope
from jobs.models import Call
from jobs.operations import hooks as hooks_of
from jobs.operations import routines as routines_of
from tenants.models import ApiToken, Invitation, Membership, Secret
from tenants.operations import invitations, logins, tokens, vault
from tenants.queries.seats import seats_of
from tenants.rules.bearers import written
from tenants.rules.who import Actor
from tests.budgets.callers import Caller
from tests.budgets.ledgers import another, cents, reserved_by, submitted
from tests.builders import (
    World,
    a_held_call,
    a_policy,
    a_rule,
    a_switch,
    a_tool,
    a_world,
    an_agent,
    an_unknown_call,
    see,
)
from tests.senders import STANDARD

# (how the address begins, the name in it) → what it names. The first that fits counts.
KINDS: Final = (
    ("jobs/", "shown", "job"),
    ("calls/", "shown", "call"),
    ("routines/", "shown", "routine"),
    ("events/", "shown", "hook"),
    ("login/", "shown", "login"),
    ("hooks/", "shown", "hook address"),
    ("budgets/operations/", "shown", "operation"),
    ("budgets/amounts/", "shown", "amount"),
    ("budgets/keys/", "shown", "budget key"),
    ("budgets/", "shown", "budget"),
    ("approvals/", "shown", "hold"),
    ("catalog/tools/", "slug", "tool"),
    ("catalog/functions/", "label", "function"),
    ("catalog/skills/", "plugin/name", "skill"),
    ("catalog/agents/", "name", "agent"),
    ("api/v1/catalog/agents/", "name", "agent"),
    ("api/v1/jobs/", "shown", "job"),
    ("api/v1/calls/", "shown", "call"),
    ("api/v1/budgets/", "operation_id", "operation"),
    ("api/", "rest", "rest"),
    ("catalog/plugins/", "name", "plugin"),
    ("catalog/policy/versions/", "number", "policy version"),
    ("catalog/switches/", "shown", "switch"),
    ("settings/connections/", "shown", "connection"),
    ("settings/notices/sent/", "shown", "notice"),
    ("settings/notices/", "shown", "channel"),
    ("settings/people/invitations/", "shown", "invitation"),
    ("settings/people/", "shown", "member"),
    ("settings/tokens/", "shown", "token"),
    ("settings/secrets/", "shown", "secret"),
    ("invitation/", "token", "invitation address"),
    ("sign-in/link/", "token", "sign-in link"),
    ("sign-in/with/", "provider_id", "provider"),
)
# Of these there is no foreign one: they are the studio's, or are known by a secret alone.
NOBODYS: Final = frozenset({"rest", "hook address", "login", "sign-in link", "provider", "invitation address"})


@dataclass(frozen=True, slots=True)
class Form:
    """Who may send it at least, and what it holds; `else_` is what somebody who may not is told."""

    role: str
    holds: Mapping[str, Any] = field(default_factory=dict)
    else_: tuple[int, ...] = (403,)


NOT_AS_SHOWN: Final = (403, 409)  # the form here does not know what the card has shown
SELF: Final = "viewer"  # every member may, for it is their own
BY_TOKEN: Final = (401,)  # a session alone changes nothing here
WRITES: Final[dict[str, Form]] = {
    "api-jobs": Form("admin", {}, BY_TOKEN),
    "api-cancel-job": Form("admin", {}, BY_TOKEN),
    "api-budget-batches": Form("admin", {}, BY_TOKEN),
    "api-budget-confirm": Form("admin", {}, BY_TOKEN),
    "api-budget-ingest": Form("admin", {}, BY_TOKEN),
    "api-budget-pair": Form("admin", {}, BY_TOKEN),
    "api-budget-renew": Form(SELF),  # whoever shows what renews it
    "new-budget": Form("admin", {"name": "n", "zone": "UTC", "unconfirmed": "lapse"}),
    "budget-limit": Form("admin", {"period": "day", "mode": "alert_only", "amount": "1"}),
    "new-budget-key": Form("admin", {"name": "n", "scope": "full"}),
    "rotate-budget-key": Form("admin"),
    "revoke-budget-key": Form("admin"),
    "release-amount": Form("operator"),
    "confirm-amount": Form("operator", {"amount": "1"}),
    "stop-job": Form("operator"),
    "new-job": Form("operator", {"agent": "clerk"}),
    "new-routine": Form("operator", {"agent": "clerk", "name": "n", "cron": "* * * * *", "zone": "UTC"}),
    "change-routine": Form("operator", {"agent": "clerk", "name": "n", "cron": "* * * * *", "zone": "UTC"}),
    "run-routine": Form("operator"),
    "turn-routine": Form("operator", {"on": "no"}),
    "remove-routine": Form("operator"),
    "new-hook": Form("operator", {"agent": "clerk", "name": "n", "signing": "standard"}),
    "change-hook": Form("operator", {"agent": "clerk", "name": "n"}),
    "turn-hook": Form("operator", {"on": "no"}),
    "hook-secret": Form("operator"),
    "remove-hook": Form("operator"),
    "hook": Form(SELF),  # whoever signs
    "login": Form(SELF, {"answer": "allow"}),
    "login-ask": Form(SELF),
    "login-take": Form(SELF),
    "login-end": Form(SELF),
    "hold": Form("operator", {"answer": "approve"}, NOT_AS_SHOWN),
    "group": Form("operator", {"answer": "happened"}, NOT_AS_SHOWN),
    "several": Form("operator", {"do": "deny"}, (400, 403, 409, 422)),
    "edit-arguments": Form("operator", {}, (302, 403)),
    "always-allow": Form("admin"),
    "extend": Form("operator"),
    "ask-again": Form("operator"),
    "deciding": Form("admin"),
    "upload-plugin": Form("author"),
    "take-up-plugin": Form("author"),
    "remove-plugin": Form("admin"),
    "delete-plugin": Form("admin"),
    "review-listing": Form("author", {"approve": "*"}),
    "list-again": Form("author"),
    "withdraw-approval": Form("author", {"shown": "look:x"}),
    "policy-edit": Form("admin", {"do": "save", "note": "x"}),
    "policy-simulate": Form(SELF),
    "policy-replay": Form(SELF),
    "policy-restore": Form("admin", {"note": "x"}),
    "new-switch": Form("operator", {"scope": "tenant", "mode": "pause", "reason": "x"}),
    "lift-switch": Form("admin"),
    "new-connection": Form("admin", {"name": "new", "url": "https://a.example/", "kind": "none"}),
    "connection": Form("admin", {"url": "https://a.example/", "kind": "none"}),
    "connection-client": Form("admin"),
    "remove-connection": Form("admin"),
    "connection-sign-in": Form("admin"),
    "connection-sign-out": Form("admin"),
    "audit-export": Form("admin", {"as": "csv"}),
    "new-channel": Form("admin", {"way": "email", "name": "new", "to": "a@b.example"}),
    "channel": Form("admin", {"name": "new", "to": "a@b.example"}),
    "channel-test": Form("admin"),
    "channel-secret": Form("admin"),
    "channel-turn": Form("admin", {"on": "no"}),
    "channel-remove": Form("admin"),
    "notice-again": Form("admin"),
    "exporter": Form("admin", {"url": "https://a.example/"}),
    "turn-exporter": Form("admin", {"on": "no"}),
    "remove-exporter": Form("admin"),
    "invite": Form("admin", {"role": "admin", "days": "7"}),
    "revoke-invitation": Form("admin"),
    "member": Form("admin", {"role": "viewer"}),
    "remove-member": Form("admin"),
    "revoke-token": Form("admin", else_=(404,)),  # another person's
    "put-secret": Form("admin", {"name": "KEY", "value": "x"}),
    "remove-secret": Form("admin"),
    "new-token": Form(SELF),
    "account": Form(SELF),
    "unlink-provider": Form(SELF),
    "switch-workspace": Form(SELF),
    "sign-in": Form(SELF),
    "sign-out": Form(SELF),
    "sign-in-with": Form(SELF),
    "invitation": Form(SELF),
}


@dataclass(frozen=True, slots=True)
class Route:
    """One address of the URL table."""

    name: str
    pattern: str
    names: tuple[str, ...]

    @property
    def kind(self) -> str:
        """What it names; empty when it names nothing. Raises `LookupError` when that is not known here."""
        if not self.names:
            return ""
        for beginning, name, kind in KINDS:
            if self.pattern.startswith(beginning) and self.names == tuple(name.split("/")):
                return kind
        raise LookupError(
            f"{self.pattern} ({self.name}) has no example: add what it names to KINDS of tests/pages/routes.py"
        )

    def at(self, value: str) -> str:
        """The address of that one."""
        return reverse(self.name, args=value.split("/", len(self.names) - 1) if self.names else [])


def routes() -> list[Route]:
    """All of them."""
    return list(_under(get_resolver(), ""))


def _under(resolver: URLResolver, before: str) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from _under(entry, before + str(entry.pattern))
        elif isinstance(entry, URLPattern):
            assert entry.name, f"{entry.pattern} has no name"
            pattern = before + str(entry.pattern)
            yield Route(entry.name, pattern, tuple(re.findall(r"<(?:\w+:)?(\w+)>", pattern)))


@dataclass(frozen=True, slots=True)
class Ground:
    """A workspace with one of each kind of thing: what an address of it calls each."""

    world: World
    named: Mapping[str, str]


def a_ground(slug: str) -> Ground:
    """One of each kind of thing, walked to by operations."""
    world = a_world(slug)
    actor = Actor("pat", "test", world.person)
    call, hold = a_held_call(world)
    an_unknown_call(world)
    a_tool(world.tenant, slug=f"tool-of-{slug}")
    an_agent(world.tenant, f"agent-of-{slug}")
    for _ in range({"ours": 3, "theirs": 5}[slug]):
        a_policy(world, a_rule("odd", "ask", tool="nowhere"))
    switch = a_switch(world, Scope.AGENT, f"agent-of-{slug}", mode=Mode.PAUSE)
    switch_off = a_switch(world, Scope.FUNCTION, "shop.look")
    given = Given(Credential.OAUTH)
    url = "https://crm.example/mcp"
    crm = connections.make(tenant=world.tenant, name=slug, url=url, allowed=(), given=given, actor=actor)
    invitations.invite(
        tenant=world.tenant,
        token=f"to {slug}",
        role=seats_of(world.person)[0].role,
        email="",
        good_for=invitations.GOOD_FOR[1],
        actor=actor,
    )
    (seat,) = seats_of(world.person)
    token = tokens.make(
        seat=seat, token=written(slug.ljust(36, "0")), name="t", scopes=["read"], agent="", days=7, actor=actor
    )
    mail = channels.Wanted(f"mail of {slug}", to=["a@b.example"])
    channel = channels.make(tenant=world.tenant, way=Way.EMAIL, wanted=mail, secret="", actor=actor)
    notice = channels.send_test(tenant=world.tenant, channel=channel, actor=actor)
    with db.write(world.tenant):
        vault.put("variable KEY", "a value")
        version = PluginVersion.objects.get(plugin__name=f"tool-of-{slug}")
        Skill.objects.create(tenant_id=world.tenant, plugin_version=version, name=f"skill-of-{slug}", text="…")
    with db.read(world.tenant):
        secret, member = Secret.objects.get().pk, Membership.objects.get().pk
        invitation, number = Invitation.objects.get().pk, PolicyVersion.objects.count()
        assert Connection.objects.count() == ApiToken.objects.count() == 1
    routine = routines_of.make(
        tenant=world.tenant,
        wanted=routines_of.Wanted(slug, "clerk", "0 3 * * *", "UTC"),
        person=world.person,
        actor=actor,
    )
    hook = hooks_of.make(
        tenant=world.tenant,
        wanted=hooks_of.Wanted(slug, "clerk"),
        secret=STANDARD,
        person=world.person,
        actor=actor,
    )
    ledger = another(world.tenant, name=slug)
    batch = submitted(ledger, cents())
    key = ids.show(ids.BUDGET_KEY, Caller(ledger, slug, seat=seat).key)
    named = {
        "": "",
        "operation": str(batch.operation),
        "amount": str(reserved_by(batch)[0]),
        "budget": ids.show(ids.PROJECT, ledger.project),
        "budget key": key,
        "routine": ids.show(ids.ROUTINE, routine),
        "hook": ids.show(ids.HOOK, hook),
        "login": ids.show(ids.LOGIN, logins.ask(challenge="0" * 64, code="B" * 8, machine=slug, address="::1").id),
        "hook address": ids.show(ids.HOOK, hook),
        "job": ids.show(ids.JOB, see(world, Call, call).job_id),
        "call": ids.show(ids.CALL, call),
        "hold": ids.show(ids.HOLD, hold),
        "tool": f"tool-of-{slug}",
        "agent": f"agent-of-{slug}",
        "plugin": f"tool-of-{slug}",
        "function": f"tool-of-{slug}.look",
        "skill": f"tool-of-{slug}/skill-of-{slug}",
        "rest": "v1/nothing",
        "policy version": str(number),
        "switch": ids.show(ids.SWITCH, switch if slug == "theirs" else switch_off),
        "connection": ids.show(ids.CONNECTION, crm),
        "channel": ids.show(ids.CHANNEL, channel),
        "notice": ids.show(ids.NOTICE, notice),
        "invitation": ids.show(ids.INVITATION, invitation),
        "member": ids.show(ids.MEMBER, member),
        "token": ids.show(ids.TOKEN, token),
        "secret": ids.show(ids.SECRET, secret),
        "invitation address": f"to {slug}",
        "sign-in link": "none",
        "provider": "provider",
    }
    return Ground(world, named)


PREFIXES: Final = {
    "budget": ids.PROJECT,
    "budget key": ids.BUDGET_KEY,
    "routine": ids.ROUTINE,
    "hook": ids.HOOK,
    "job": ids.JOB,
    "call": ids.CALL,
    "hold": ids.HOLD,
    "switch": ids.SWITCH,
    "connection": ids.CONNECTION,
    "channel": ids.CHANNEL,
    "notice": ids.NOTICE,
    "invitation": ids.INVITATION,
    "member": ids.MEMBER,
    "token": ids.TOKEN,
    "secret": ids.SECRET,
}


def nobodys(kind: str) -> str:
    """What would name one of this kind that nobody has, as long as a foreign one's name is."""
    if kind in ("operation", "amount"):
        return str(ids.new())
    if kind in PREFIXES:
        return ids.show(PREFIXES[kind], ids.new())
    fixed = {"policy version": "9", "function": "tool-of-nobody.look", "skill": "tool-of-theirs/skill-of-nobody"}
    return fixed.get(kind, f"{kind}-of-nobody"[: len(f"{kind}-of-theirs")])
