"""`model: provider:name` of an agent's file: which providers there are, and over which connection one is asked."""

from dataclasses import dataclass
from typing import Final

REHEARSAL: Final = "rehearsal"


@dataclass(frozen=True, slots=True)
class Provider:
    """How one kind of provider is spoken to. `url` and `header` are what its connection usually has.

    An empty `header` stands for a bearer token.
    """

    name: str
    connection: str
    url: str
    header: str = ""


ANTHROPIC: Final = Provider("anthropic", "anthropic", "https://api.anthropic.com", "x-api-key")
OPENAI: Final = Provider("openai", "openai", "https://api.openai.com/v1")
OPENAI_CHAT: Final = Provider("openai-chat", "openai", "https://api.openai.com/v1")
GOOGLE: Final = Provider("google", "google", "https://generativelanguage.googleapis.com", "x-goog-api-key")
PROVIDERS: Final = {one.name: one for one in (ANTHROPIC, OPENAI, OPENAI_CHAT, GOOGLE)}


@dataclass(frozen=True, slots=True)
class ModelName:
    """A provider's word and its own name for the model."""

    provider: Provider
    name: str


def read_model(model: str) -> ModelName | None:
    """The provider and model that `provider:name` means; None when it names no provider there is."""
    word, colon, name = model.partition(":")
    provider = PROVIDERS.get(word)
    return ModelName(provider, name) if provider and colon and name.strip() == name and name else None


def model_trouble(model: str) -> tuple[str, str] | None:
    """What is wrong with an agent's `model`, and the fix; None when it can be asked."""
    if model == REHEARSAL or read_model(model) is not None:
        return None
    words = ", ".join(f"{one}:…" for one in PROVIDERS)
    return (
        f"{model[:100]!r} names no model",
        f"write {REHEARSAL}, or one of {words}; openai-chat:… for any server that speaks OpenAI's chat completions",
    )


def connection_of(model: str, connection: str) -> str:
    """The connection an agent's model is asked over: the one its file names, else the one called as its provider."""
    named = read_model(model)
    return connection or (named.provider.connection if named else "")
