"""`skills/*.md`: texts an agent may read, each with its name and description in a front part between `---` lines."""

from dataclasses import dataclass

from catalog.rules.fields import Notes


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """One skill: the index shows name and description, reading it gives the text."""

    name: str
    description: str
    text: str


def read_skill(notes: Notes, content: bytes) -> SkillSpec | None:
    """The skill in these bytes; what is wrong with it goes into `notes`. None when nothing can be read at all."""
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        notes.add(1, "", "the file is not UTF-8 text", "save it as UTF-8")
        return None
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
    fields.done()
    if not skill.text:
        notes.add(ends[1] + 1, "", "has no text", "write the skill's text under the second ---")
    return skill
