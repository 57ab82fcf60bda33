"""`oz0 plugin new`: a plugin to begin with, which already keeps every promise that a function can make."""

import keyword
import sys
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from studio.cli import _told
from studio.cli.plugin import _folder

STARTER = "starter"
END = ".txt"  # so that nothing takes the starter's files for the product's own
NAMED = {
    "tool_": "{tool}_",
    "agent.yaml": "{plugin}.yaml",
    "skill.md": "use-{plugin}.md",
    "test_plugin": "test_{tool}",
    "gitignore": ".gitignore",
}


@click.command(
    cls=_told.Told,
    short_help="Write a plugin to begin with.",
    exits={
        _told.Exit.DONE: "it is written",
    },
    examples=[
        "oz0 plugin new shelf",
        "oz0 plugin new acme-shelf --dir plugins/shelf",
    ],
)
@click.argument("name")
@click.option(
    "--dir", "where", type=click.Path(path_type=Path, file_okay=False), help="The folder to write; NAME here."
)
@_folder.json_option
def new(name: str, where: Path | None, as_json: bool) -> None:
    """Write a plugin called NAME to begin with.

    Its functions say what they do, can be stopped and clean up, tell a busy service from a broken one, and write once
    for one key. It has a manual, an agent that needs no model, tests of its own, and a file for the drill.
    """
    tool = name.replace("-", "_")
    if why := _trouble(name, tool):
        raise click.BadParameter(f"{name!r} {why}; choose another one, such as shelf", param_hint="NAME")
    folder = where if where is not None else Path(name)
    if folder.exists() and any(folder.iterdir()):
        raise click.BadParameter(f"{folder} is there already and not empty; name another folder", param_hint="--dir")
    written = []
    for path, text in sorted(starter(name, tool)):
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        written.append(path)
    if as_json:
        _folder.show_json({"plugin": name, "folder": str(folder), "files": written})
        return
    click.echo(f"wrote {name} to {folder}: {len(written)} files")
    click.echo(f"next: oz0 plugin test {folder}, then oz0 plugin test --drill {folder}")


def starter(name: str, tool: str) -> Iterator[tuple[str, str]]:
    """Every file of a new plugin: its path in the folder and its text."""
    for path, content in _each(files("studio.cli.plugin") / STARTER, ""):
        for ours, theirs in NAMED.items():
            path = path.replace(ours, theirs.format(tool=tool, plugin=name))
        yield path.removesuffix(END), content.replace("@plugin@", name).replace("@tool@", tool)


def _each(folder: Traversable, above: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _each(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(END):
            yield f"{above}{entry.name}", entry.read_text(encoding="utf-8")


def _trouble(name: str, tool: str) -> str:
    """Why a plugin, its tool and its modules cannot all be called so; empty when they can."""
    from catalog.rules.fields import NAME, NAME_WORDS
    from catalog.rules.manifest import tool_id_trouble

    if not NAME.match(name):
        return f"is not {NAME_WORDS}"
    if why := tool_id_trouble(tool):
        return f"cannot be a tool's id too: {why}"
    if not tool.isidentifier() or keyword.iskeyword(tool) or f"{tool}_server" in sys.stdlib_module_names:
        return "cannot begin the name of a Python module"
    return ""
