"""Waiting by rounds: results that say "ask again with this", for clients whose protocol knows them (RULES G5)."""

from typing import Final
from uuid import UUID

import mcp_types as types
from django.core import signing
from mcp.shared.exceptions import MCPError

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


def kept(exchange: Exchange, call_id: UUID, rounds: int) -> str:
    return signing.dumps([str(exchange.client.token_id), str(call_id), rounds], salt=ROUNDS)


def resumed(state: str, exchange: Exchange) -> tuple[UUID, int]:
    """The call that a round goes on to wait for, and the rounds left."""
    try:
        token, call, rounds = signing.loads(state, salt=ROUNDS)
    except signing.BadSignature as error:
        raise MCPError(types.INVALID_PARAMS, "This request state is none of the studio's.") from error
    if token != str(exchange.client.token_id):
        raise MCPError(types.INVALID_PARAMS, "This request state belongs to another token.")
    return UUID(call), rounds
