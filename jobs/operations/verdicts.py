"""May this call run now? Kill switches first, then the policy in force; both are read under the gate."""

from dataclasses import dataclass, replace
from typing import Any

from base import db
from base.canonical import digest
from catalog.models import Stage
from catalog.queries.standing import Standing, over_call
from catalog.queries.trust import approval_of, traits_now
from catalog.rules.kinds import Kind
from catalog.rules.policy import Allow, Ask, Facts, Policy, Refuse, Wait, counts_needed, judge, waits
from jobs.models import Call, Hold, Job
from jobs.operations import bodies
from jobs.queries import counts
from jobs.rules.why import Why


@dataclass(frozen=True, slots=True)
class Ruling:
    """What policy says of a call: the verdict, the number of the policy, and what an approval of it is bound to.

    A call that is `paused` is judged all the same, and does not start (RULES L11). `wait` keeps one that may run from
    beginning now.
    """

    verdict: Allow | Ask | Refuse
    policy: int
    binding: str = ""
    paused: bool = False
    wait: Wait | None = None

    @property
    def why(self) -> str:
        """One sentence for a person: the rule that says so, and what made it say so."""
        rule = self.verdict.rule
        return f"rule “{rule.title}”" + (f": {rule.why}" if rule.why else "")


@dataclass(frozen=True, slots=True)
class Switched:
    """A kill switch is on over the call, or the plugin of its tool was removed (`Why.TOOL_GONE`)."""

    detail: str
    reason: Why = Why.KILL_SWITCH


def rule_on(call: Call, job: Job, *, claiming: bool = False) -> Ruling | Switched:
    """Judge a call by the switches and the policy in force (RULES L7, A2, B6). The gate must be held.

    `claiming` says that an attempt begins next if it may: then the rates that were looked at stand still until that
    has committed. Asked before, what a rate says is only what it says now; the claim asks again.

    What the call's function says of itself is taken anew, as far as its word counts now (RULES U1).
    """
    if call.function is not None and call.function.tool.plugin_version.stage == Stage.REMOVED:
        return Switched("its plugin was removed from the catalog", Why.TOOL_GONE)
    open_world = _take_the_word(call)
    standing = _standing(job.agent_name, call.tool_slug, call.function_name)
    if standing.switch:
        return Switched(standing.switch)
    facts = _counted(
        standing.policy,
        Facts(
            kind=Kind(call.kind),
            tool=call.tool_slug,
            function=call.function_name,
            agent=job.agent_name,
            starter=job.starter,
            open_world=open_world,
            at=db.must_write(),
            tainted=job.tainted_at is not None,
            arguments=bodies.arguments_of(call),
        ),
        call,
        claiming=claiming,
    )
    verdict = judge(standing.policy, facts)
    binding = _binding(call, verdict) if isinstance(verdict, Ask) else ""
    wait = waits(standing.policy, facts) if claiming else None
    return Ruling(verdict, standing.number, binding, paused=standing.paused, wait=wait)


def switch_over(call: Call, job: Job) -> Switched | None:
    """The kill switch that is on over a call; None when there is none. The gate must be held."""
    found = _standing(job.agent_name, call.tool_slug, call.function_name).switch
    return Switched(found) if found else None


def _counted(policy: Policy, facts: Facts, call: Call, *, claiming: bool) -> Facts:
    """The facts with what the policy counts; a policy without such rules counts nothing."""
    needed = counts_needed(policy, facts)
    if needed.rates:
        if claiming:
            counts.hold_rates(needed.rates, facts.tool)
        facts = replace(facts, full=counts.full(needed.rates, facts.tool, facts.at))
    return replace(facts, repeats=counts.repeats(call)) if needed.repeats else facts


def _standing(agent: str, tool: str, function: str) -> Standing:
    """Read once for the calls of one write: while the gate is held, none of it changes."""
    known = db.kept("standing", dict[tuple[str, str, str], Standing])
    if (agent, tool, function) not in known:
        known[agent, tool, function] = over_call(agent=agent, tool=tool, function=function)
    return known[agent, tool, function]


def word_of(call: Call) -> dict[str, Any]:
    """The fields of a call that hold what its function says of itself, to be saved with its next move."""
    return {name: getattr(call, name) for name in ("kind", "read_only", "retry_safe", "honours_key")}


def _take_the_word(call: Call) -> bool:
    """Set what the function says of itself, as far as that counts now; whether it reaches the outside world."""
    if call.function is None:
        return True
    traits = traits_now(call.function)
    call.kind, call.read_only = traits.kind, traits.read_only
    call.retry_safe, call.honours_key = traits.retry_safe, traits.honours_key
    return traits.open_world


def approved(call: Call, ruling: Ruling) -> bool:
    """Whether a person approved exactly this call under exactly this rule (RULES A4, B6)."""
    return Hold.objects.filter(call_id=call.pk, approves=ruling.binding).exclude(approves="").exists()


def _binding(call: Call, verdict: Ask) -> str:
    """The digest of everything an approval is bound to; a change of any of it asks again (RULES A4).

    Where the entry's word counts by a person's approval, that is part of it: once taken back, it is void for good.
    """
    word = approval_of(call.function) if call.function is not None else None
    return digest(
        {
            "tenant": str(call.tenant_id),
            "call": str(call.pk),
            "entry": call.entry_digest,
            "arguments": call.args_digest,
            "rule": verdict.rule.id,
            "rule_content": verdict.rule.digest,
            **({"word": str(word)} if word is not None else {}),
        }
    )
