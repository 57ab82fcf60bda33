"""Waiting by rounds: results that say "ask again with this", for clients whose protocol knows them (RULES G5)."""

from typing import Final
from uuid import UUID

import mcp_types as types
from django.core import signing
from mcp.shared.exceptions import MCPError

from base.canonical import digest_of_any
from jobs.gateway.exchange import Exchange

ROUNDS: Final = "oz0/rounds"
MOST_ROUNDS: Final = 1_000


def asked_for(params: types.CallToolRequestParams) -> int:
    """How many rounds of waiting the client takes for one call, by its own word; 1 when it says nothing."""
    said = (params.meta or {}).get(ROUNDS)
    return min(said, MOST_ROUNDS) if isinstance(said, int) and not isinstance(said, bool) and said > 0 else 1


def known_to(protocol: str) -> bool:
    """Whether the client's protocol knows a result that says: ask again with this."""
    return protocol >= "2026"


def wanted(params: types.CallToolRequestParams) -> str:
    """A digest of what is called: a round goes on with the same function and arguments alone."""
    return digest_of_any([params.name, params.arguments or {}])


def kept(exchange: Exchange, call_id: UUID, rounds: int) -> str:
    return signing.dumps([str(exchange.client.token_id), str(call_id), rounds, exchange.wanted], salt=ROUNDS)


def resumed(state: str, exchange: Exchange) -> tuple[UUID, int]:
    """The call that a round goes on to wait for, and the rounds left."""
    try:
        token, call, rounds, asked = signing.loads(state, salt=ROUNDS)
    except (signing.BadSignature, ValueError) as error:
        raise MCPError(types.INVALID_PARAMS, "This request state is none of the studio's.") from error
    if token != str(exchange.client.token_id):
        raise MCPError(types.INVALID_PARAMS, "This request state belongs to another token.")
    if asked != exchange.wanted:
        said = (
            "This request state belongs to another call: send it with the function and arguments that it was given for."
        )
        raise MCPError(types.INVALID_PARAMS, said)
    return UUID(call), rounds
