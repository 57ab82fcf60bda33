"""The one door to the model library: a turn's order in a provider's words, and its answer in ours.

Exactly one request is sent for each asking (RULES B7): what may be asked again is asked by the job's next turn.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from base import outbound
from base.addresses import read_url
from base.clock import boot_time
from base.outbound_transport import Transport
from catalog.rules.model_names import ANTHROPIC, GOOGLE, OPENAI, OPENAI_CHAT, ModelName
from catalog.rules.servers import Remote
from jobs.rules import texts
from jobs.rules.turns import PastTurn, TurnAnswer, TurnBusy, TurnFailed, TurnOrder, TurnOutcome, Wanted

if TYPE_CHECKING:  # these take a second to import, which only a process that asks a model spends
    from pydantic_ai.exceptions import AgentRunError
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.settings import ModelSettings

PLACEHOLDER: Final = "kept-by-the-studio"  # libraries insist on a credential of their own; the transport drops it
LOST_ANSWER: Final = "The studio has no result of this call."
type OnText = Callable[[str], None]


async def ask(order: TurnOrder, named: ModelName, remote: Remote, *, limit: float, on_text: OnText) -> TurnOutcome:
    """Ask the model once. `on_text` is given what it has said so far, as it says it. `limit` is in seconds."""
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.exceptions import AgentRunError

    if order.begin_by is not None and boot_time() > order.begin_by:
        return TurnBusy("It came too late to be sent: nothing is reserved for it any more.", wait=0.0)
    door = Transport(outbound.Client(allowed=remote.allowed, headers=remote.headers))
    try:
        model = _model(named, remote, door)
        async with asyncio.timeout(limit):
            async with model_request_stream(
                model,
                messages(order),
                model_settings=_settings(order, limit),
                model_request_parameters=_parameters(order),
            ) as stream:
                said = ""
                async for _ in stream:
                    now = stream.get().text or ""
                    if now != said:
                        said = now
                        on_text(said)
            return _answer(stream.get(), named, remote)
    except TimeoutError:
        return TurnBusy(f"{named.provider.name} did not finish its answer in {limit:.0f} s.", wait=None, went_out=True)
    except AgentRunError as error:
        return _failure(error, door, named)
    finally:
        await door.aclose()


def _settings(order: TurnOrder, limit: float) -> "ModelSettings":
    """A summary is to be words alone. Its request carries the definitions too: the calls before it are of them."""
    found: ModelSettings = {"max_tokens": order.agent.max_tokens, "max_retries": 0, "timeout": limit}
    if order.sums_up:
        found["tool_choice"] = "none"
    return found


def messages(order: TurnOrder) -> "list[ModelMessage]":
    """All that the model reads: the instructions, the job's input, and every turn of this run with its results.

    A run that another one came before reads after the input what is known of that (RULES G3).
    """
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    parts: list[ModelRequestPart] = [UserPromptPart(text) for text in (first_words(order.given), *order.begun_with)]
    found: list[ModelMessage] = []
    for turn in order.past:
        parts += [UserPromptPart(note) for note in turn.notes]
        response = _response(turn)
        found += [ModelRequest(parts=parts, instructions=order.agent.instructions or None), response]
        parts = _results(turn, response)
    parts += [UserPromptPart(note) for note in (*order.notes, *([texts.SUM_UP] if order.sums_up else []))]
    return [*found, ModelRequest(parts=parts, instructions=order.agent.instructions or None)]


def first_words(given: Mapping[str, Any]) -> str:
    """What the model is asked at first: the job's only text, or its input as JSON."""
    values = list(given.values())
    if len(values) == 1 and isinstance(values[0], str) and values[0].strip():
        return values[0]
    return json.dumps(given, ensure_ascii=False, indent=1) if given else "Begin."


def _results(turn: PastTurn, response: "ModelResponse") -> "list[ModelRequestPart]":
    """A result for each call of a turn: providers refuse a history in which one is missing."""
    from pydantic_ai.messages import ToolReturnPart

    said = {call.model_call_id: call.text for call in turn.calls}
    return [
        ToolReturnPart(one.tool_name, said.get(one.tool_call_id, LOST_ANSWER), one.tool_call_id)
        for one in response.tool_calls
    ]


def _response(turn: PastTurn) -> "ModelResponse":
    """The model's own answer as its provider gave it, or one made of what was kept of it."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart

    if isinstance(turn.response, Mapping):
        kept = ModelMessagesTypeAdapter.validate_python([turn.response])[0]
        if isinstance(kept, ModelResponse):
            written = {call.model_call_id: call.arguments for call in turn.calls}
            return replace(kept, parts=[_filled(part, written) for part in kept.parts])
    calls = [ToolCallPart(call.model_name, call.arguments, call.model_call_id) for call in turn.calls]
    return ModelResponse(parts=[*([TextPart(turn.say)] if turn.say else []), *calls])


def _filled(part: Any, written: Mapping[str, Any]) -> Any:
    from pydantic_ai.messages import ToolCallPart

    return replace(part, args=written.get(part.tool_call_id, {})) if isinstance(part, ToolCallPart) else part


def _kept(response: "ModelResponse") -> Any:
    """A response to keep. The arguments are kept with their calls alone, where what is secret in them is sealed."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    kept = ModelMessagesTypeAdapter.dump_python([response], mode="json")[0]
    for part in kept["parts"]:
        if part["part_kind"] == "tool-call":
            part["args"] = {}
    return kept


def _parameters(order: TurnOrder) -> Any:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=one.name,
                description=one.description,
                parameters_json_schema=dict(one.input_schema),
                strict=False,
            )
            for one in order.tools
        ]
    )


def _model(named: ModelName, remote: Remote, door: Transport) -> "Model":
    client = door.client()
    match named.provider:
        case provider if provider == ANTHROPIC:
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(
                named.name,
                provider=AnthropicProvider(api_key=PLACEHOLDER, base_url=remote.url, http_client=client),
                profile=_as_it_is(),
            )
        case provider if provider in (OPENAI, OPENAI_CHAT):
            from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            made = OpenAIProvider(api_key=PLACEHOLDER, base_url=remote.url, http_client=client)
            kind = OpenAIResponsesModel if provider == OPENAI else OpenAIChatModel
            return kind(named.name, provider=made, profile=_as_it_is())
        case provider if provider == GOOGLE:
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(
                named.name,
                provider=GoogleProvider(api_key=PLACEHOLDER, base_url=remote.url, http_client=client),
            )
        case other:
            raise AssertionError(f"no model for the provider {other.name}")


def _as_it_is() -> "ModelProfile":
    """Schemas go out as they are counted and shown (RULES T1).

    Google's API takes a part of JSON Schema only: there the library rewrites what it could not take.
    """
    from pydantic_ai.profiles import ModelProfile

    return ModelProfile(json_schema_transformer=None)


def _answer(response: "ModelResponse", named: ModelName, remote: Remote) -> TurnOutcome:
    say, calls, usage = response.text or "", response.tool_calls, _usage(response, named, remote)
    if response.finish_reason == "content_filter":
        return TurnFailed(f"{named.provider.name} stopped its answer (content filter){_said(say)}", usage=usage)
    if response.finish_reason == "length":
        why = "its answer was cut off at the agent's max_tokens"
        return TurnFailed(f"{why}; raise that, or ask for less{_said(say)}", agents_fault=True, usage=usage)
    if not say and not calls:
        return TurnFailed("the model answered with neither words nor calls", usage=usage)
    return TurnAnswer(
        say=say,
        wanted=tuple(Wanted(one.tool_name, one.args or {}, one.tool_call_id) for one in calls),
        model=response.model_name or named.name,
        usage=usage,
        response=_kept(response),
    )


def _usage(response: "ModelResponse", named: ModelName, remote: Remote) -> dict[str, int]:
    """The tokens of one request, and its price in millionths of a dollar where the provider's prices are known."""
    used = response.usage
    found = {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": used.cache_read_tokens,
        "cache_write_tokens": used.cache_write_tokens,
    }
    price = _price(response) if read_url(remote.url).origin == read_url(named.provider.url).origin else None
    return {name: count for name, count in found.items() if count} | ({} if price is None else {"micro_usd": price})


def _price(response: "ModelResponse") -> int | None:
    """What a response cost, in millionths of a dollar; None when its model has no price that is known."""
    try:
        return int(response.cost().total_price * 1_000_000)
    except (LookupError, ValueError):
        return None


def _failure(error: "AgentRunError", door: Transport, named: ModelName) -> TurnOutcome:
    """What an error of the library means: whether to ask again later, or that the turn has failed."""
    from pydantic_ai.exceptions import (
        ContentFilterError,
        ModelAPIError,
        ModelConnectionError,
        ModelRateLimitError,
        ModelServerError,
        ModelUnavailableError,
    )

    who, seen = named.provider.name, door.seen
    if isinstance(error, ContentFilterError):
        return TurnFailed(f"{who} stopped its answer (content filter)")
    if isinstance(error, ModelRateLimitError | ModelUnavailableError | ModelServerError | ModelConnectionError):
        why = seen.trouble or f"{who} answered {seen.status}{_said(_detail(error))}"
        return TurnBusy(why, wait=error.retry_after, went_out=seen.went_out and seen.status != 429)
    if isinstance(error, ModelAPIError):
        refused = 300 <= (seen.status or 0) < 500 and seen.status != 408  # what broke later may have been worked on
        charged = seen.went_out and not refused
        return TurnFailed(f"{who} refused the request ({seen.status}){_said(_detail(error))}", charged=charged)
    return TurnFailed(f"{who} answered what cannot be read: {' '.join(str(error).split())[:300]}")


def _detail(error: "AgentRunError") -> str:
    """The provider's own sentence in an error's body, where there is one."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    found = inner.get("message") if isinstance(inner, Mapping) else inner
    return found if isinstance(found, str) else ""


def _said(text: str) -> str:
    flat = " ".join(text.split())
    return f": {flat[:500]}" if flat else ""
