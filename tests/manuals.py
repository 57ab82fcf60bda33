"""Plugins with manuals and skills, as files that are registered: a tool with a manual, and agents of another plugin."""

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from base.folders import keep
from catalog.operations.plugins import register
from tenants.rules.who import SYSTEM
from tests.builders import DESTRUCTIVE, READ, WRITE, World, a_function, a_node, a_person, a_tenant
from tests.catalogs import lists

PIECES = {"type": "object", "properties": {"pieces": {"type": "integer"}}, "required": ["pieces"]}
DEPOT = (
    a_function("look", READ, schema={"type": "object", "properties": {"shelf": {"type": "string"}}}),
    a_function("take", DESTRUCTIVE, schema=PIECES),
    a_function("note", WRITE),
)
CAREFUL = "Look before you take. Never take the last piece."
FILES: dict[str, dict[str, str]] = {
    "depot": {
        "oz0-plugin.yaml": """\
name: depot
version: "1"
tools: [{id: depot, mcp: [python, -m, depot], manual: [careful, depot/counting]}]
agents: [agents/]
skills: [skills/]
""",
        "skills/careful/SKILL.md": f"---\nname: careful\ndescription: How to take.\nlicense: MIT\n---\n{CAREFUL}\n",
        "skills/careful/more.md": "Beside it, and not read.\n",
        "skills/counting.md": "---\nname: counting\ndescription: How to count.\n---\nTwice.\n",
        "skills/spare.md": "---\nname: spare\ndescription: In nobody's manual.\n---\nSpare.\n",
        "agents/keeper.yaml": """\
name: keeper
model: rehearsal
functions: [depot.*]
rehearsal:
  - call: [{function: oz.skill, arguments: {name: careful}}]
  - say: "{{ last }}"
""",
    },
    "crew": {
        "oz0-plugin.yaml": 'name: crew\nversion: "1"\nagents: [agents/]\nskills: [skills/]\n',
        "skills/manners.md": "---\nname: manners\ndescription: How to ask.\n---\nPolitely.\n",
        "agents/reader.yaml": """\
name: reader
model: rehearsal
functions: [depot.look, depot.note]
skills: [manners, depot/spare, nobody/knows]
rehearsal:
  - call: [{function: depot.look}, {function: oz.skill, arguments: {name: depot/careful}}, {function: depot.note}]
  - say: "{{ last }}"
""",
        "agents/stranger.yaml": """\
name: stranger
model: rehearsal
functions: [elsewhere.*]
rehearsal:
  - call: [{function: oz.skill, arguments: {name: depot/careful}}]
  - say: "{{ last }}"
""",
        "agents/finder.yaml": """\
name: finder
model: rehearsal
tool_loading: lazy
functions: [depot.look, depot.take]
limits: {calls: 4}
input: {function: depot__take, pieces: 3}
rehearsal:
  - call: [{function: oz.find, arguments: {query: "taking a piece", limit: 1}}]
  - call:
      - function: oz.call
        arguments: {function: "{{ input.function }}", arguments: {pieces: "{{ input.pieces }}"}}
  - say: "{{ last }}"
""",
    },
}


def a_world_with_manuals(folder: Path) -> World:
    """The plugins `depot`, a tool with a manual, and `crew`, agents that are granted some of it."""
    tenant = a_tenant()
    for name in FILES:
        registered(tenant, folder, name)
    lists(tenant, "depot", DEPOT)
    return World(tenant, a_person(tenant), a_node())


def registered(tenant: UUID, folder: Path, name: str, changed: Mapping[str, str] | None = None) -> None:
    """One of the plugins, with these of its files written otherwise."""
    written = folder / f"{name}-{len(list(folder.iterdir()))}"
    keep({path: text.encode() for path, text in (FILES[name] | (changed or {})).items()}, written)
    register(tenant=tenant, folder=written, home=folder / "home", actor=SYSTEM)
