"""What a request state is good for (RULES G5): the call that it was given for, by the token that made it."""

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from jobs.gateway.exchange import Exchange
from jobs.gateway.rounds import kept, resumed, wanted

REFUND = types.CallToolRequestParams(name="billing__refund", arguments={"order": "o-1", "amount": 3})


def an_exchange(params: types.CallToolRequestParams, token: UUID) -> Exchange:
    exchange = Exchange(cast(Any, SimpleNamespace(token_id=token)), "", 1.0, cast(Any, None))
    exchange.wanted = wanted(params)
    return exchange


def test_a_round_goes_on_with_the_same_function_and_arguments() -> None:
    token, call = uuid4(), uuid4()
    state = kept(an_exchange(REFUND, token), call, 7)
    again = types.CallToolRequestParams(name="billing__refund", arguments={"amount": 3, "order": "o-1"})
    assert resumed(state, an_exchange(again, token)) == (call, 7)


@pytest.mark.parametrize(
    ("name", "arguments", "own", "said"),
    [
        ("billing__refund", {"order": "o-1", "amount": 999}, True, "another call"),
        ("billing__refund", None, True, "another call"),
        ("billing__balance", {"order": "o-1", "amount": 3}, True, "another call"),
        ("billing__refund", {"order": "o-1", "amount": 3}, False, "another token"),
    ],
)
def test_a_round_of_another_call_or_token_is_refused(name: str, arguments: Any, own: bool, said: str) -> None:
    token = uuid4()
    state = kept(an_exchange(REFUND, token), uuid4(), 7)
    other = an_exchange(types.CallToolRequestParams(name=name, arguments=arguments), token if own else uuid4())
    with pytest.raises(MCPError, match=said):
        resumed(state, other)


@pytest.mark.parametrize("state", ["", "x", "a:b:c", "W10:1abc:def"])
def test_what_is_no_state_of_the_studios_is_refused(state: str) -> None:
    with pytest.raises(MCPError, match="none of the studio's"):
        resumed(state, an_exchange(REFUND, uuid4()))
