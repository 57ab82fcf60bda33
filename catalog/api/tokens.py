"""What an agent sends to its model in every request, for programs (RULES T1)."""

from http import HTTPStatus
from typing import Any

from catalog.queries.costs import agent_tokens
from catalog.queries.kept_agents import unreadable_agent
from catalog.rules.budgets import told
from catalog.rules.estimates import ERROR, METHOD
from tenants.queries.seats import Seat
from tenants.views.programs import Refused, read_by_programs


def _of_agent(seat: Seat, name: str) -> dict[str, Any] | None:
    """The figures of one agent, by the same estimate as the pages and the command."""
    found = agent_tokens(seat.tenant, name)
    if found is None:
        if unreadable := unreadable_agent(seat.tenant, name):
            raise Refused(HTTPStatus.CONFLICT, f"The agent {name} is unreadable: {unreadable.why}.")
        return None
    return {"agent": found.spec.name, "plugin": found.plugin, **told(found.cost), "method": METHOD, "error": ERROR}


of_agent = read_by_programs(_of_agent, agent_in="name")
