"""May this call run now? Kill switches first, then the policy in force; both are read under the gate."""

from dataclasses import dataclass

from base import db
from base.canonical import digest
from catalog.queries import policies, switches
from catalog.rules.kinds import Kind
from catalog.rules.policy import Allow, Ask, Facts, Refuse, judge
from jobs.models import Call, Hold, Job
from jobs.operations import bodies
from jobs.rules.why import Why


@dataclass(frozen=True, slots=True)
class Ruling:
    """What policy says of a call: the verdict, the number of the policy, and what an approval of it is bound to."""

    verdict: Allow | Ask | Refuse
    policy: int
    binding: str = ""

    @property
    def why(self) -> str:
        """One sentence for a person: the rule that says so, and what made it say so."""
        rule = self.verdict.rule
        return f"rule “{rule.title}”" + (f": {rule.why}" if rule.why else "")


@dataclass(frozen=True, slots=True)
class Switched:
    """A kill switch is on over the call."""

    detail: str
    reason: Why = Why.KILL_SWITCH


def rule_on(call: Call, job: Job, *, open_world: bool) -> Ruling | Switched:
    """Judge a call by the switches and the policy in force (RULES L7, A2, B6). The gate must be held."""
    switch = switches.over_call(agent=job.agent_name, tool=call.tool_slug, function=call.function_name)
    if switch is not None:
        return Switched(f"{switch.scope} {switch.target}".strip())
    policy, number = policies.in_force()
    verdict = judge(
        policy,
        Facts(
            kind=Kind(call.kind),
            tool=call.tool_slug,
            function=call.function_name,
            agent=job.agent_name,
            starter=job.starter,
            open_world=open_world,
            at=db.must_write(),
            arguments=bodies.arguments_of(call),
        ),
    )
    return Ruling(verdict, number, _binding(call, verdict) if isinstance(verdict, Ask) else "")


def approved(call: Call, ruling: Ruling) -> bool:
    """Whether a person approved exactly this call under exactly this rule (RULES A4, B6)."""
    return Hold.objects.filter(call_id=call.pk, approves=ruling.binding).exclude(approves="").exists()


def _binding(call: Call, verdict: Ask) -> str:
    """The digest of everything an approval is bound to; a change of any of it asks again (RULES A4)."""
    return digest(
        {
            "tenant": str(call.tenant_id),
            "call": str(call.pk),
            "entry": call.entry_digest,
            "arguments": call.args_digest,
            "rule": verdict.rule.id,
            "rule_content": verdict.rule.digest,
        }
    )
