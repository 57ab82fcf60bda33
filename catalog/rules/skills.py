"""Skills: texts an agent may read, each with its name and description in a front part between `---` lines.

Which of them stand in an agent's index follows from its file and from the tools it is granted functions of (RULES M2).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from catalog.rules.fields import Notes

SKILL_FILE: Final = "SKILL.md"  # a folder that has one is that skill; its other files are not read
LARGEST: Final = 256 * 1024  # bytes of one skill's file


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """One skill: the index shows name and description, reading it gives the text."""

    name: str
    description: str
    text: str


@dataclass(frozen=True, slots=True, order=True)
class IndexLine:
    """One skill in an agent's index, by its full name `<plugin>/<skill>`: why it is there, and whose it is.

    `granted`: the agent's file names it. `manual_of` are the tools whose manual it is a part of and of which the agent
    is granted any function. `is_manual`: it is a part of some tool's manual, whether or not the agent may call that.
    """

    name: str
    description: str
    granted: bool
    manual_of: tuple[str, ...]
    is_manual: bool = False

    @property
    def plugin(self) -> str:
        """The plugin it belongs to."""
        return self.name.partition("/")[0]

    def taints(self, agents_plugin: str) -> bool:
        """Whether reading it taints a job of an agent of this plugin: another plugin's manual does (RULES M3).

        However it came into the index: an agent's file that names it makes it no text of the agent's own plugin.
        """
        return self.is_manual and self.plugin != agents_plugin


def full_name(plugin: str, skill: str) -> str:
    """`<plugin>/<skill>`, from a name that a file of the plugin writes with or without it."""
    return skill if "/" in skill else f"{plugin}/{skill}"


def index_of(
    plugin: str,
    wanted: Sequence[str],
    tools: Collection[str],
    *,
    manuals: Mapping[str, Sequence[str]],
    there: Mapping[str, str],
    in_manuals: Collection[str] = (),
) -> tuple[IndexLine, ...]:
    """The index of an agent of `plugin` whose file names the skills `wanted`, granted any function of these `tools`.

    `manuals` are the skills of each tool's manual and `there` every skill's description, both by full names;
    `in_manuals` are the skills that are in any manual there is. What the file names first comes first, then the
    manuals by tool. A skill that is not there is left out.
    """
    named = [full_name(plugin, skill) for skill in wanted]
    of: dict[str, list[str]] = {}
    for tool in sorted(tools):
        for skill in manuals.get(tool, ()):
            of.setdefault(skill, []).append(tool)
    return tuple(
        IndexLine(name, there[name], name in named, tuple(of.get(name, ())), name in of or name in in_manuals)
        for name in dict.fromkeys([*named, *of])
        if name in there
    )


def not_there(plugin: str, wanted: Iterable[str], there: Collection[str]) -> tuple[str, ...]:
    """The skills that an agent's file names and that no plugin has, as the file writes them."""
    return tuple(skill for skill in wanted if full_name(plugin, skill) not in there)


def meant(index: Sequence[IndexLine], name: str, plugin: str) -> IndexLine | None:
    """The line a model means by a name: in full, or without its plugin where that leaves one, the agent's own first."""
    known = {line.name: line for line in index}
    if name in known:
        return known[name]
    if full_name(plugin, name) in known:
        return known[full_name(plugin, name)]
    alike = [line for line in index if line.name.partition("/")[2] == name]
    return alike[0] if len(alike) == 1 else None


def read_skill(notes: Notes, content: bytes) -> SkillSpec | None:
    """The skill in these bytes; what is wrong with it goes into `notes`. None when nothing can be read at all."""
    if len(content) > LARGEST:
        notes.add(1, "", f"the file is larger than {LARGEST // 1024} KiB", "split it into several skills")
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        notes.add(content.count(b"\n", 0, error.start) + 1, "", "the file is not UTF-8 text", "save it as UTF-8")
        return None
    lines = text.splitlines()
    ends = [at for at, line in enumerate(lines) if line.rstrip() == "---"]
    if len(ends) < 2 or ends[0] != 0:
        notes.add(
            1,
            "",
            "does not begin with its name and description",
            "begin with ---, name:, description:, and --- again",
        )
        return None
    # An empty line stands for the first ---, so lines keep their numbers.
    fields = notes.document("\n".join(["", *lines[1 : ends[1]]]).encode())
    if fields is None:
        return None
    skill = SkillSpec(
        name=fields.name("name", "write `name: my-skill`"),
        description=fields.text("description", longest=1_000),
        text="\n".join(lines[ends[1] + 1 :]).strip(),
    )
    for said in ("license", "compatibility", "metadata", "allowed-tools"):  # of the public format; nothing follows here
        fields.take(said)
    fields.done()
    if not skill.text:
        notes.add(ends[1] + 1, "", "has no text", "write the skill's text under the second ---")
    if "\0" in skill.text or "\0" in skill.description:
        line = next((at for at, line in enumerate(lines, 1) if "\0" in line), 1)
        notes.add(line, "", "holds a NUL character, which cannot be kept", "take it out")
    return skill


def is_skill_file(path: str, files: Collection[str]) -> bool:
    """Whether a file in a folder of skills is one, not a file beside a SKILL.md."""
    if not path.endswith(".md"):
        return False
    folders = path.split("/")[:-1]
    inside = any(f"{'/'.join(folders[:depth])}/{SKILL_FILE}" in files for depth in range(1, len(folders) + 1))
    return not inside or (path.endswith(f"/{SKILL_FILE}"))
