"""What an agent sends to its model in every request, for programs (RULES T1)."""

from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest
from ninja import Router, Schema

from base.api_words import answers
from catalog.queries.costs import agent_tokens
from catalog.queries.kept_agents import unreadable_agent
from catalog.rules.budgets import told
from catalog.rules.estimates import ERROR, METHOD
from tenants.views.programs import Needs, Refused, asker_of

router = Router(tags=["catalog"])


class AgentTokens(Schema):
    """The estimate for one agent, by tool and one by one."""

    agent: str
    plugin: str
    tokens: int
    budget: int
    over: bool
    tool_loading: str
    tools: dict[str, int]
    functions: dict[str, int]
    own: dict[str, int]
    drop: list[str]
    unmeasured: list[str]
    method: str
    error: str


@router.get(
    "/catalog/agents/{plain:name}/tokens",
    response=answers(AgentTokens, 409),
    auth=Needs(bound_to="name"),
    url_name="api-agent-tokens",
    summary="Tell what an agent's definitions cost",
)
def of_agent(request: HttpRequest, name: str) -> Any:
    """The figures of one agent, by the same estimate as the pages and the command."""
    tenant = asker_of(request).seat.tenant
    found = agent_tokens(tenant, name)
    if found is None:
        if unreadable := unreadable_agent(tenant, name):
            raise Refused(HTTPStatus.CONFLICT, f"The agent {name} is unreadable: {unreadable.why}.")
        raise Http404
    return {"agent": found.spec.name, "plugin": found.plugin, **told(found.cost), "method": METHOD, "error": ERROR}
