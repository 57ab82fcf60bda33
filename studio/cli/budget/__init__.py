"""`oz0 budget`: ask a studio's spend journal, and tell it, from a terminal or a script."""

from studio.cli import Commands


@Commands.of(__name__, __path__, ["oz0 budget check --model gpt-4o --provider openai --input-tokens 900"])
def budget() -> None:
    """Ask a studio's spend journal before you spend, and tell it what you spent."""
