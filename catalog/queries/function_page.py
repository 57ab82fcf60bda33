"""One function as a page: what it takes, what it says of itself, what that means, and what policy says for whom."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from base import db
from catalog.models import EntryApproval, Function, LintReport, Listing, Stage, Tool, Transport
from catalog.queries import policies
from catalog.queries.finding_list import FindingRow, findings_of
from catalog.queries.kept_agents import KeptAgent, UnreadableAgent, kept_agents
from catalog.queries.policy_waiting import Sometimes, sometimes_of
from catalog.queries.switch_rows import SwitchRow, on_over
from catalog.queries.trust import approvals_of, approved_entries, ever_approved, traits_by, trusted_by
from catalog.rules.estimates import ONE_IS_LONG, Definition, as_sent, estimate
from catalog.rules.function_words import Hint, Meaning, Place, hints_of, meanings, why_kind
from catalog.rules.grants import Name, giving
from catalog.rules.kinds import Traits, Undeclared, undeclared
from catalog.rules.policy import Facts, Policy, judge
from catalog.rules.policy_coverage import Entry, Outlook, cover, is_of_a_call
from catalog.rules.policy_fixes import Fix, fixes, why
from catalog.rules.policy_rules import STARTERS, Effect
from catalog.rules.schema_form import Field, form_of
from catalog.rules.switching import Scope

AGENTS_MOST: Final = 100  # agents of one function that are shown
ROWS_MOST: Final = 500  # rows of one entry's past that are looked at
PAST_MOST: Final = 12  # changes of one entry that are shown
EFFECTS: Final = {"Allow": Effect.ALLOW, "Ask": Effect.ASK, "Refuse": Effect.REFUSE}


@dataclass(frozen=True, slots=True)
class Says:
    """What the policy says of a call by jobs that these started, and by which rule."""

    effect: Effect
    starters: tuple[str, ...]  # empty: whoever started it
    rule: str


@dataclass(frozen=True, slots=True)
class GrantedTo:
    """An agent that may call it: by which of its grants, and what the policy says for it."""

    agent: str
    plugin: str
    grants: tuple[str, ...]
    says: tuple[Says, ...]


@dataclass(frozen=True, slots=True)
class EntryChange:
    """A listing in which the entry came or became another one."""

    listing: UUID
    measured_at: datetime
    digest: str
    first: bool
    approved_by: str
    approved_at: datetime | None
    withdrawn_at: datetime | None


@dataclass(frozen=True, slots=True)
class FunctionPage:
    """One function of a current tool, as its server lists it now."""

    tool: str
    name: str
    plugin: str
    version: str
    remote: bool
    sensitive: bool
    model_name: str
    title: str
    description: str
    traits: Traits
    trusted: bool
    why_kind: str
    trouble: Undeclared | None
    tokens: int
    sent: str
    takes: Field
    input_schema: Any
    answers: Field | None
    output_schema: Any
    hints: tuple[Hint, ...]
    meta: Any
    meanings: tuple[Meaning, ...]
    check: str
    outlook: Outlook
    why_waits: str
    sometimes: tuple[Sometimes, ...]
    fixes: tuple[Fix, ...]
    policy: int
    agents: tuple[GrantedTo, ...]
    agents_in_all: int
    unreadable: tuple[UnreadableAgent, ...]
    findings: tuple[FindingRow, ...]
    linted: bool
    digest: str
    measured_at: datetime
    past: tuple[EntryChange, ...]
    rows: tuple[UUID, ...]  # every listed row of it, by which its calls are found
    switches: tuple[SwitchRow, ...]
    now: datetime

    @property
    def label(self) -> str:
        """`tool.function`, which names it everywhere."""
        return f"{self.tool}.{self.name}"

    @property
    def effect(self) -> Effect:
        """What becomes of its calls where no rule is about one of them."""
        return EFFECTS[type(self.outlook.verdict).__name__]

    @property
    def long(self) -> bool:
        """Whether its definition alone is worth a warning (RULES T2)."""
        return self.tokens > ONE_IS_LONG


def function_page(tenant: UUID, tool: str, name: str) -> FunctionPage | None:
    """The page of a function that is listed now; None when there is no such function."""
    with db.read(tenant) as now:
        row = (
            Function.objects.filter(
                tool__slug=tool, name=name, listing__current=True, tool__plugin_version__stage=Stage.CURRENT
            )
            .select_related("tool__plugin_version__plugin", "listing")
            .first()
        )
        return None if row is None else _page(row, now)


def _page(row: Function, now: datetime) -> FunctionPage:
    tool, version = row.tool, row.tool.plugin_version
    approved, ever = approved_entries([tool]), ever_approved([tool])
    trusted, traits = trusted_by(row, approved), traits_by(row, approved)
    policy, number = policies.in_force()
    entry = Entry(tool.slug, row.name, traits.kind, traits.open_world)
    (outlook,) = cover(policy, [entry], (), now).outlooks
    trouble = undeclared(row.annotations, trusted=trusted)
    sent = Definition(row.model_name, row.description, row.input_schema)
    kept = kept_agents()
    granted_to = _granted_to(
        kept.readable,
        Name(tool.slug, row.name),
        unseen=tool.transport == Transport.URL and (tool.pk, row.name) not in ever,
    )
    rows = list(
        Function.objects.filter(tool__slug=tool.slug, name=row.name)
        .order_by("-pk")
        .values_list("pk", "entry_digest", "listing_id", "tool_id")[:ROWS_MOST]
    )
    return FunctionPage(
        tool=tool.slug,
        name=row.name,
        plugin=version.plugin.name,
        version=version.version,
        remote=tool.transport == Transport.URL,
        sensitive=tool.sensitive,
        model_name=row.model_name,
        title=row.title,
        description=row.description,
        traits=traits,
        trusted=trusted,
        why_kind=why_kind(traits, trusted=trusted),
        trouble=trouble,
        tokens=row.tokens if row.tokens is not None else estimate([sent])[0],
        sent=as_sent(sent),
        takes=form_of(row.input_schema),
        input_schema=row.input_schema,
        answers=form_of(row.output_schema) if row.output_schema is not None else None,
        output_schema=row.output_schema,
        hints=hints_of(row.annotations),
        meta=row.meta,
        meanings=meanings(traits, _place(tool, row.listing)),
        check=str(tool.check_text.get(row.name, "")),
        outlook=outlook,
        why_waits=why(outlook, trouble) if outlook.waits else "",
        sometimes=sometimes_of(outlook),
        fixes=fixes(policy, outlook, trouble, now, trusted=trusted) if outlook.waits else (),
        policy=number,
        agents=tuple(
            GrantedTo(agent, plugin, grants, _says(policy, entry, agent, now))
            for agent, plugin, grants in granted_to[:AGENTS_MOST]
        ),
        agents_in_all=len(granted_to),
        unreadable=kept.unreadable,
        findings=findings_of(tool.slug, row.name),
        linted=LintReport.objects.filter(plugin_version=version).exists(),
        digest=row.entry_digest,
        measured_at=row.listing.measured_at,
        past=_past(tool, row.name, [(listing, digest) for _, digest, listing, of in rows if of == tool.pk]),
        rows=tuple(pk for pk, _, _, _ in rows),
        switches=on_over((Scope.TOOL, tool.slug), (Scope.FUNCTION, f"{tool.slug}.{row.name}")),
        now=now,
    )


def _place(tool: Tool, listing: Listing) -> Place:
    remote = tool.transport == Transport.URL
    return Place(remote, listing.can_cancel, listing.can_report, tool.timeout, tool.cleanup)


def _granted_to(agents: Iterable[KeptAgent], name: Name, *, unseen: bool) -> list[tuple[str, str, tuple[str, ...]]]:
    """The agents that may call it, with the grants that say so."""
    found = [(one.name, one.plugin, giving(one.spec.functions, name, unseen=unseen)) for one in agents]
    return [one for one in found if one[2]]


def _says(policy: Policy, entry: Entry, agent: str, now: datetime) -> tuple[Says, ...]:
    """What the policy says for an agent's calls, apart from rules that are about single calls."""
    plain = Policy(tuple(rule for rule in policy.rules if not is_of_a_call(rule)))
    found: dict[tuple[Effect, str], list[str]] = {}
    for starter in STARTERS:
        facts = Facts(entry.kind, entry.tool, entry.function, agent, starter, entry.open_world, now)
        verdict = judge(plain, facts)
        found.setdefault((EFFECTS[type(verdict).__name__], verdict.rule.title), []).append(starter)
    return tuple(
        Says(effect, tuple(starters) if len(found) > 1 else (), rule) for (effect, rule), starters in found.items()
    )


def _past(tool: Tool, name: str, rows: list[tuple[UUID, str]]) -> tuple[EntryChange, ...]:
    """The listings in which the entry became what it was then, newest first. `rows` are newest first."""
    turns = [
        (listing, digest, at + 1 == len(rows))
        for at, (listing, digest) in enumerate(rows)
        if at + 1 == len(rows) or rows[at + 1][1] != digest
    ][:PAST_MOST]
    times = dict(Listing.objects.filter(pk__in=[turn[0] for turn in turns]).values_list("pk", "measured_at"))
    given: dict[str, EntryApproval] = {}
    if tool.transport == Transport.URL:
        approvals = approvals_of(tool).filter(function=name, entry_digest__in=[turn[1] for turn in turns])
        given = {one.entry_digest: one for one in approvals.select_related("approved_by").order_by("approved_at")}
    return tuple(
        EntryChange(
            listing=listing,
            measured_at=times[listing],
            digest=digest,
            first=first,
            approved_by=one.approved_by.get_username() if (one := given.get(digest)) else "",
            approved_at=one.approved_at if one else None,
            withdrawn_at=one.withdrawn_at if one else None,
        )
        for listing, digest, first in turns
    )
