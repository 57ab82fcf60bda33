"""What each provider is sent, over one request, and what its answers and errors come to."""

import asyncio
import json
import threading
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from catalog.rules.agents import AgentSpec
from catalog.rules.estimates import Definition
from catalog.rules.model_names import PROVIDERS, read_model
from catalog.rules.servers import Remote
from jobs.agent import providers
from jobs.rules.turns import PastCall, PastTurn, TurnAnswer, TurnBusy, TurnFailed, TurnOrder, TurnOutcome
from tests.servers.providers import Provider, Says, provider

NONE = UUID(int=0)
SCHEMA = {
    "type": "object",
    "title": "Note",
    "$defs": {"place": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 1}}}},
    "properties": {"text": {"type": "string", "format": "date", "default": "x"}, "at": {"$ref": "#/$defs/place"}},
    "required": ["text"],
}
ADD = Definition("notes__add", "Add a note", SCHEMA)
BASES = {"anthropic": "", "openai": "/v1", "openai-chat": "/v1", "google": ""}
HEADERS = {
    "anthropic": {"x-api-key": "the-key"},
    "openai": {"Authorization": "Bearer the-key"},
    "openai-chat": {"Authorization": "Bearer the-key"},
    "google": {"x-goog-api-key": "the-key"},
}
EVERY = pytest.mark.parametrize("word", sorted(PROVIDERS))


def an_order(word: str, **more: Any) -> TurnOrder:
    agent = AgentSpec(name="clerk", model=f"{word}:some-model", instructions="Be brief.")
    order = TurnOrder(NONE, NONE, uuid4(), 1, 1, agent, {"text": "Buy milk"}, (), tools=(ADD,))
    return replace(order, **more)


def asked(
    word: str, here: Provider, order: TurnOrder | None = None, *, limit: float = 20
) -> tuple[TurnOutcome, list[str]]:
    """(what the question came to, what was said on the way)."""
    said: list[str] = []
    named = read_model(f"{word}:some-model")
    assert named is not None
    remote = Remote(NONE, word, here.url + BASES[word], (here.place,), headers=HEADERS[word])
    asking = providers.ask(order or an_order(word), named, remote, limit=limit, on_text=said.append)
    return asyncio.run(asking), said


def found(body: Any, *names: str) -> Any:
    """The first value under one of these names, however deep."""
    inside = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for name, value in inside:
        if name in names:
            return value
        if (deeper := found(value, *names)) is not None:
            return deeper
    return None


@EVERY
def test_a_model_is_asked_once_with_the_connections_credential_and_no_other(word: str) -> None:
    with provider(Says("Milk it is.", calls=(("notes__add", {"text": "milk"}),))) as here:
        outcome, said = asked(word, here)
    (request,) = here.asked
    assert "the-key" in "".join(request.headers.values())
    assert providers.PLACEHOLDER not in str(request.headers)
    assert isinstance(outcome, TurnAnswer)
    assert outcome.say == said[-1] == "Milk it is."
    assert len(said) > 1, "the words came all at once"
    (want,) = outcome.wanted
    assert want.model_name == "notes__add"
    assert want.arguments in ({"text": "milk"}, '{"text": "milk"}')
    assert (outcome.usage["input_tokens"], outcome.usage["output_tokens"]) == (120, 30)
    assert "micro_usd" not in outcome.usage, "a server of one's own has no known price"


@pytest.mark.rule("T1")
@EVERY
def test_a_definition_goes_out_exactly_as_it_is_counted(word: str) -> None:
    """Google's API takes a part of JSON Schema only, and there the library writes a `format` as words."""
    with provider(Says("ok")) as here:
        asked(word, here)
    tools = here.asked[0].body["tools"]
    sent = found(tools, "input_schema", "parameters", "parameters_json_schema")
    if word == "google":
        assert sent["properties"]["at"] == {"$ref": "#/$defs/place"}
        assert sent["properties"]["text"]["description"] == "Format: date"
    else:
        assert sent == SCHEMA
    assert found(tools, "description") == "Add a note"


@EVERY
def test_the_next_turn_reads_its_own_answer_as_the_provider_gave_it_with_every_result(word: str) -> None:
    two = (("notes__add", {"text": "milk"}), ("notes__add", {"text": "tea"}))
    with provider(Says("I add two.", calls=two), Says("Done.")) as here:
        first, _ = asked(word, here)
        assert isinstance(first, TurnAnswer)
        calls = tuple(
            PastCall(want.model_name, want.model_call_id, want.arguments, f"result {at}")
            for at, want in enumerate(first.wanted)
        )
        past = PastTurn(first.say, calls[:1], notes=("a late note",), response=first.response)
        second, _ = asked(word, here, an_order(word, number=2, past=(past,), notes=("a newer note",)))
    assert isinstance(second, TurnAnswer)
    body = str(here.asked[1].body)
    places = [body.index(words) for words in ("Buy milk", "a late note", "I add two.", "result 0", "a newer note")]
    assert places == sorted(places)
    assert providers.LOST_ANSWER in body, "a call without a result, which providers refuse"


@pytest.mark.rule("G3")
@EVERY
def test_a_summary_is_asked_for_with_the_definitions_and_without_a_call_and_a_next_run_begins_with_it(
    word: str,
) -> None:
    with provider(Says("So far.")) as here:
        asked(word, here)
        outcome, _ = asked(word, here, an_order(word, sums_up=True, begun_with=("the record", "an earlier summary")))
    assert isinstance(outcome, TurnAnswer) and outcome.say == "So far."
    usual, request = (one.body for one in here.asked)
    assert found(request, "tools") == found(usual, "tools")
    choice = found(request, "tool_choice", "toolConfig", "tool_config")
    assert "none" in str(choice).lower() and choice != found(usual, "tool_choice", "toolConfig", "tool_config")
    body = str(request)
    places = [body.index(words) for words in ("Buy milk", "the record", "an earlier summary", "call no function now")]
    assert places == sorted(places)
    assert "call no function now" not in str(usual)
    with provider(Says("So far.")) as here:
        outcome, _ = asked(word, here, an_order(word, sums_up=True, tools=()))
    assert isinstance(outcome, TurnAnswer), "an agent without functions may have called some that are not there"


@EVERY
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_busy_provider_is_asked_again_later_and_never_at_once(word: str, status: int) -> None:
    with provider(Says(status=status, headers={"Retry-After": "7"}, error="too much")) as here:
        outcome, _ = asked(word, here)
    assert isinstance(outcome, TurnBusy), outcome
    assert (outcome.wait, outcome.went_out) == (7.0, status != 429)
    assert "too much" in outcome.error
    assert len(here.asked) == 1


@EVERY
@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 422])
def test_a_refused_request_fails_the_turn_in_the_providers_words(word: str, status: int) -> None:
    with provider(Says(status=status, error="no such thing", headers={"Location": "http://192.0.2.1/"})) as here:
        outcome, _ = asked(word, here)
    assert isinstance(outcome, TurnFailed), outcome
    assert str(status) in outcome.error
    assert not outcome.charged
    assert len(here.asked) == 1


@EVERY
def test_an_answer_that_breaks_off_is_asked_for_again_and_may_have_cost_something(word: str) -> None:
    with provider(Says("a rather long answer", cut=150)) as here:
        outcome, _ = asked(word, here)
    assert isinstance(outcome, TurnBusy), outcome
    assert outcome.went_out
    assert "ended inside the answer" in outcome.error
    assert len(here.asked) == 1


@EVERY
def test_an_answer_that_never_ends_is_given_up_at_its_limit(word: str) -> None:
    never = threading.Event()
    with provider(Says("late", wait=never)) as here:
        outcome, _ = asked(word, here, limit=0.3)
        never.set()
    assert isinstance(outcome, TurnBusy), outcome
    assert outcome.went_out


@EVERY
def test_rubbish_fails_the_turn(word: str) -> None:
    with provider(Says(raw=b"rubbish\n\n")) as here:
        outcome, _ = asked(word, here)
    assert isinstance(outcome, TurnFailed), outcome


def test_an_error_within_an_answer_that_had_begun_may_have_cost_something() -> None:
    said = json.dumps({"type": "error", "error": {"type": "of_a_new_kind", "message": "it broke"}})
    with provider(Says(raw=f"event: error\ndata: {said}\n\n".encode())) as here:
        outcome, _ = asked("anthropic", here)
    assert isinstance(outcome, TurnFailed | TurnBusy), outcome
    assert outcome.charged if isinstance(outcome, TurnFailed) else outcome.went_out


STOPS = {"anthropic": "max_tokens", "openai": "length", "openai-chat": "length", "google": "MAX_TOKENS"}


@EVERY
def test_an_answer_cut_at_max_tokens_is_not_taken_for_the_end(word: str) -> None:
    with provider(Says("half of", stop=STOPS[word])) as here:
        outcome, _ = asked(word, here)
    assert isinstance(outcome, TurnFailed), outcome
    assert "max_tokens" in outcome.error
    assert "half of" in outcome.error
    assert outcome.usage["output_tokens"] == 30


def test_a_private_address_that_no_admin_allowed_is_never_connected_to() -> None:
    named = read_model("openai:some-model")
    assert named is not None
    with provider(Says("no")) as here:
        remote = Remote(NONE, "openai", f"{here.url}/v1", ())
        asking = providers.ask(an_order("openai"), named, remote, limit=10, on_text=lambda _: None)
        outcome = asyncio.run(asking)
    assert not here.asked
    assert "allow" in getattr(outcome, "error", "")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": "Buy milk"}, "Buy milk"),
        ({}, "Begin."),
        ({"n": 3}, '{\n "n": 3\n}'),
        ({"text": " "}, '{\n "text": " "\n}'),
    ],
)
def test_a_jobs_only_text_is_asked_as_it_is_and_any_other_input_as_json(given: dict[str, Any], words: str) -> None:
    assert providers.first_words(given) == words
