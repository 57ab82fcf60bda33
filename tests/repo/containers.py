"""What `Containerfile` and `compose.yaml` say, read as text: commands, variables, and what fills them."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

IMAGE: Final = "oz0-studio"
FILLED: Final = re.compile(r"\$\{([A-Z][A-Z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Container:
    """One service that runs our image."""

    name: str
    command: tuple[str, ...]
    variables: dict[str, str]
    healthcheck: tuple[str, ...]


def services(tree: Path) -> dict[str, Any]:
    """All services of `compose.yaml`, anchors resolved."""
    found: dict[str, Any] = yaml.safe_load((tree / "compose.yaml").read_text())["services"]
    return found


def ours(tree: Path) -> dict[str, Container]:
    """The services of `compose.yaml` that run our image."""
    return {
        name: Container(
            name,
            tuple(service["command"]),
            {key: str(value) for key, value in service["environment"].items()},
            tuple(service.get("healthcheck", {}).get("test", ())[1:]),
        )
        for name, service in services(tree).items()
        if service["image"] == IMAGE
    }


def filled_in(tree: Path) -> set[str]:
    """The variables that `compose.yaml` takes from `.env`."""
    file = tree / "compose.yaml"
    return set(FILLED.findall(file.read_text())) if file.exists() else set()


def steps(tree: Path, word: str) -> list[str]:
    """What the lines of `Containerfile` that begin with `word` say."""
    lines = (tree / "Containerfile").read_text().splitlines()
    return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]


def image_command(tree: Path) -> tuple[str, ...]:
    """What the image runs when nothing else is said."""
    return tuple(json.loads(steps(tree, "CMD")[-1]))
