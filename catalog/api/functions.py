"""The functions of the catalog, for programs: what they do, by what they say, and what becomes of their calls."""

from http import HTTPStatus
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from base.api_words import Cursor, Limit, Words, answers
from catalog.queries.function_index import Indexed
from catalog.queries.function_list import functions_after
from catalog.queries.policy_waiting import Show
from catalog.rules.function_filter import TOKENS_MOST, FunctionFilter
from catalog.rules.kinds import Kind
from tenants.views.programs import Needs, Refused, asker_of

router = Router(tags=["catalog"])


class FunctionsIn(Schema):
    """Which functions. `fares` is what becomes of their calls by the policy in force."""

    q: Words = Field("", description="Words in the name, the title, the description or an argument's name.")
    kind: Kind | None = None
    tool: Words = ""
    plugin: Words = ""
    agent: Words = Field("", description="Only those that this agent is granted.")
    fares: Show | None = None
    over: Annotated[int, Field(ge=0, le=TOKENS_MOST, description="Only those of at least so many tokens.")] = 0
    after: Cursor = ""
    limit: Limit = 50


class FunctionLine(Schema):
    """One function, as its newest listing says. `unapproved`: a remote server's word that nobody approved yet."""

    function: str
    plugin: str
    tool: str
    does: str
    kind: Kind
    read_only: bool
    retry_safe: bool
    honours_key: bool
    open_world: bool
    fares: Show
    tokens: int
    unapproved: bool


class FunctionsOut(Schema):
    """A page of functions, by tool and name; `found` counts all that fit."""

    found: int
    functions: list[FunctionLine]
    next: str | None


@router.get(
    "/catalog/functions",
    response=answers(FunctionsOut),
    auth=Needs(asked=FunctionsIn, free=True),
    url_name="api-functions",
    summary="List the functions of the catalog",
)
def listed(request: HttpRequest, wanted: Query[FunctionsIn]) -> Any:
    """The functions by tool and name. A token that is bound to an agent reads of those that it is granted."""
    asker = asker_of(request)
    if asker.agent and wanted.agent not in ("", asker.agent):
        raise Refused(HTTPStatus.FORBIDDEN, f"This token is bound to the agent {asker.agent}, and reads only of that.")
    fit = FunctionFilter(
        q=wanted.q,
        kind=wanted.kind or "",
        tool=wanted.tool,
        plugin=wanted.plugin,
        agent=asker.agent or wanted.agent,
        fares=wanted.fares or "",
        over=wanted.over,
    )
    found = functions_after(asker.seat.tenant, fit, wanted.after, most=wanted.limit)
    shown = found.rows
    return FunctionsOut(
        found=found.found,
        functions=[_line(one) for one in shown],
        next=shown[-1].label if shown and found.more else None,
    )


def _line(one: Indexed) -> FunctionLine:
    return FunctionLine(
        function=one.label,
        plugin=one.plugin,
        tool=one.tool,
        does=one.does,
        kind=one.traits.kind,
        read_only=one.traits.read_only,
        retry_safe=one.traits.retry_safe,
        honours_key=one.traits.honours_key,
        open_world=one.traits.open_world,
        fares=one.fares,
        tokens=one.tokens,
        unapproved=one.unapproved,
    )
