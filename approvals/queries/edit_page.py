"""What a person needs who edits the arguments of a waiting call, and a look at what their edit would come to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from approvals.queries.deciding_rules import deciding_rules, question_of
from approvals.queries.policy_simulation import Asked, Simulated, simulate
from approvals.rules.deciding import Question, shown_digest
from base import canonical, db, ids
from base.masking import Mask
from catalog.rules.listing_diff import Change, changed_fields
from catalog.rules.policy import Allow, Ask
from jobs.models import Hold
from jobs.operations import masking
from jobs.queries.trace import name_of
from jobs.rules.arguments import canonical_value, misfits, unkeepable
from jobs.rules.secrets import marked, put_back, replaced, texts
from jobs.rules.states import Effect, HoldKind

EDITABLE = (HoldKind.APPROVE, HoldKind.RETRY)


@dataclass(frozen=True, slots=True)
class EditPage:
    """One waiting call. `why_not` says why nobody edits it; `needed` people must approve it then."""

    hold_id: UUID
    shown_id: str
    open: bool
    why_not: str
    name: str
    tool: str
    function: str
    agent: str
    starter: str
    tainted: bool
    arguments: Any
    sealed: Any = field(repr=False)  # the same with what is secret in them, for trying an edit alone
    digest: str
    schema: Mapping[str, Any]
    rule: tuple[str, str]
    question: Question
    needed: int
    shown: str


@dataclass(frozen=True, slots=True)
class Looked:
    """What an edit comes to: what of it cannot run, or what it changes and what the policy says of it."""

    troubles: tuple[tuple[str, str], ...] = ()
    changes: tuple[Change, ...] = ()
    then: str = ""
    runs: bool = False


def edit_page(tenant: UUID, hold_id: UUID) -> EditPage | None:
    """The page of a hold of this tenant; None when there is none, or it is none that is edited."""
    with db.read(tenant):
        found = Hold.objects.select_related("call__function", "call__arguments_body", "job")
        hold = found.filter(pk=hold_id, kind__in=EDITABLE).first()
        if hold is None:
            return None
        call, rules = hold.call, deciding_rules(tenant)
        kept = call.arguments_body.data if call.arguments_body else call.arguments
        acted = "An earlier attempt may have acted with these arguments, so they are not changed."
        return EditPage(
            hold_id=hold.pk,
            shown_id=ids.show(ids.HOLD, hold.pk),
            open=hold.closed_at is None,
            why_not=acted if call.effect == Effect.MAYBE else "",
            name=name_of(call),
            tool=call.tool_slug,
            function=call.function_name,
            agent=hold.job.agent_name,
            starter=hold.job.starter,
            tainted=hold.job.tainted_at is not None,
            arguments=kept,
            sealed=masking.whole(call, kept),
            digest=call.args_digest,
            schema=call.function.input_schema if call.function else {},
            rule=(hold.rule_id, hold.rule_digest),
            question=question_of(hold, rules),
            needed=rules.needed(call.kind),
            shown=shown_digest(hold=hold.pk, kind=hold.kind, binding=hold.binding, arguments=call.args_digest),
        )


def look(tenant: UUID, page: EditPage, arguments: Any) -> Looked:
    """What these arguments, JSON text or not, would come to. Nothing is changed; the answer itself judges anew."""
    try:
        value, digest = canonical_value(arguments)
    except canonical.NotCanonical as error:
        return Looked(((error.path, error.what),))
    if not isinstance(value, dict):
        return Looked((("$", "arguments are a JSON object: they begin with {"),))
    if trouble := unkeepable(value):
        return Looked((("$", trouble),))
    secret = marked(value, page.schema)
    shown = replaced(value, secret)
    if secret:
        value, digest = canonical_value(put_back(value, page.sealed, secret))
    if wrong := misfits(value, page.schema):
        mask = Mask(texts(value, secret))
        return Looked(tuple((path, mask(what)) for path, what in wrong))
    if digest == page.digest:
        return Looked((("", "Nothing is different: approve it as it is, or change an argument."),))
    changes = changed_fields(page.arguments, shown) if isinstance(page.arguments, Mapping) else ()
    asked = Asked(page.tool, page.function, page.agent, page.starter, page.tainted, value)
    found = simulate(tenant, asked)
    if found is None:
        return Looked((("", "The catalog lists this function no more, so nothing of it runs."),))
    return _judged(page, found, changes)


def _judged(page: EditPage, found: Simulated, changes: tuple[Change, ...]) -> Looked:
    rule = found.explained.verdict.rule
    match found.explained.verdict:
        case Allow():
            return Looked((), changes, f"The policy lets it run with these: rule “{rule.title}”.", True)
        case Ask() if (rule.id, rule.digest) == page.rule and page.needed == 1:
            return Looked((), changes, "It runs with these, once, after policy is judged again.", True)
        case Ask() if (rule.id, rule.digest) == page.rule:
            more = f"{page.needed} people must approve it as it is then; your edit is the first approval."
            return Looked((), changes, more)
        case Ask():
            asks = f"Another rule asks for it then: “{rule.title}”. You read that question and answer it."
            return Looked((), changes, asks)
        case _:
            return Looked((("", f"The policy refuses it with these: rule “{rule.title}”."),), changes)
