"""A place's name is a promise: which names may stand where, and how long a file may grow.

What may stand inside an app is in `.importlinter`, contract inside-apps.
"""

from pathlib import Path
from typing import Final

from tests.repo.tree import PRODUCT, Finding, files

ROOT_FOLDERS: Final = frozenset(
    {*PRODUCT, ".ci", "benchmarks", "docs", "examples", "make", "static", "templates", "tests"},
)
ROOT_FILES: Final = frozenset(
    {
        ".dockerignore",
        ".gitignore",
        ".importlinter",
        ".python-version",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Containerfile",
        "LICENSE",
        "Makefile",
        "README.md",
        "compose.yaml",
        "manage.py",
        "pyproject.toml",
        "requirements.lock",
    }
)
LEAVES: Final = frozenset(
    {
        "__init__",
        "addresses",
        "api_words",
        "bounded_body",
        "bridge",
        "canonical",
        "children",
        "clock",
        "crash_points",
        "db",
        "env",
        "fields",
        "figures",
        "folders",
        "guardian",
        "htmx",
        "ids",
        "jail",
        "json_files",
        "log_lines",
        "masking",
        "no_nul",
        "nudge",
        "outbound",
        "outbound_transport",
        "portable",
        "ports",
        "prepared",
        "problem",
        "sandbox",
        "sealing",
        "status",
        "streaming",
        "tags",
        "tenancy",
        "text",
        "tokens",
        "visible",
        "yaml_files",
        "zones",
    },
)
SAY_NOTHING: Final = frozenset(
    {
        "common",
        "helper",
        "helpers",
        "lib",
        "manager",
        "misc",
        "services",
        "stuff",
        "tools",
        "util",
        "utils",
    }
)
LINES: Final = 500
COUNTED: Final = frozenset({".py", ".html", ".css", ".js"})


def misplaced(tree: Path) -> list[Finding]:
    """Files and folders whose name no page promises: at the root, in base, and names that say nothing anywhere."""
    found = []
    for path in files(tree):
        place = path.relative_to(tree)
        top = place.parts[0]
        if len(place.parts) == 1 and top not in ROOT_FILES:
            found.append(Finding(str(place), 1, "is not one of the files the root holds (docs/architecture.md)"))
        elif len(place.parts) > 1 and top not in ROOT_FOLDERS:
            found.append(
                Finding(str(place), 1, f"`{top}/` is not one of the folders the root holds (docs/architecture.md)")
            )
        elif top == "base" and path.suffix == ".py" and Path(place.parts[1]).stem not in LEAVES:
            found.append(
                Finding(str(place), 1, f"base holds {', '.join(sorted(LEAVES - {'__init__'}))} and nothing else")
            )
        if path.suffix == ".py" and (vague := SAY_NOTHING & {Path(part).stem for part in place.parts}):
            found.append(Finding(str(place), 1, f"`{min(vague)}` promises nothing: name the file by its one subject"))
    return found


def overlong(tree: Path) -> list[Finding]:
    """Files past the hard stop."""
    return [
        Finding(
            path.relative_to(tree).as_posix(),
            count,
            f"{count} lines, the stop is {LINES}: split it by noun or by verb group",
        )
        for path in files(tree)
        if path.suffix in COUNTED and "vendor" not in path.parts and "migrations" not in path.parts
        if (count := len(path.read_text().splitlines())) > LINES
    ]
