"""What is kept of a version's manifest, read back: what is not as this version writes it is left out."""

from dataclasses import dataclass
from typing import Any

from catalog.rules.manifest import PLUGIN_TOKENS


@dataclass(frozen=True, slots=True)
class KeptTool:
    """One tool of it: the skills of its manual and the names of its program's variables."""

    id: str
    manual: tuple[str, ...]
    env: tuple[str, ...]
    written: Any


def kept_tools(manifest: Any) -> tuple[KeptTool, ...]:
    """The tools that a kept manifest names, as they stand there."""
    tools = manifest.get("tools") if isinstance(manifest, dict) else None
    return tuple(
        KeptTool(tool["id"], _texts(tool.get("manual")), _texts(tool.get("env")), tool)
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, dict) and isinstance(tool.get("id"), str)
    )


def kept_budget(manifest: Any) -> int:
    """What the definitions of the plugin's functions may come to together (RULES T3)."""
    return kept_figure(manifest.get("tool_tokens") if isinstance(manifest, dict) else None)


def kept_figure(said: Any) -> int:
    """The same of the figure alone."""
    return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else PLUGIN_TOKENS


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
