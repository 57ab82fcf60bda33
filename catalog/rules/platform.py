"""The platform's own functions as a model is sent them, all under `oz__` (RULES C8, T4).

`oz.find` and `oz.call` come with `tool_loading: lazy`, `oz.skill` with anything in the agent's index of skills.
"""

from collections.abc import Sequence
from typing import Final

from catalog.rules.estimates import Definition
from catalog.rules.skills import IndexLine

FIND_USUAL: Final = 5
FIND_MOST: Final = 20
FIND: Final = Definition(
    name="oz__find",
    description=(
        "Look for functions you may call, by words of what you want to do. Returns the whole definitions of those that "
        "fit best, and the names of others that fit. Call what you found with oz__call. No words: every name."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "maxLength": 1000, "description": "what you want to do, in a few words"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": FIND_MOST,
                "description": f"how many definitions at most; {FIND_USUAL} when left out",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)
CALL: Final = Definition(
    name="oz__call",
    description="Call a function you found with oz__find. The result is the function's own.",
    input_schema={
        "type": "object",
        "properties": {
            "function": {"type": "string", "description": "its name, as its definition says"},
            "arguments": {"type": "object", "description": "as its input_schema asks for; left out, there are none"},
        },
        "required": ["function"],
        "additionalProperties": False,
    },
)
RESULT: Final = Definition(
    name="oz__result",
    description=(
        "Ask for the result of a call that was not over when you made it, by the call id you were told. Waits for a "
        "while; if the call is still not over it says so, and you ask again later. It never makes the call again."
    ),
    input_schema={
        "type": "object",
        "properties": {"call": {"type": "string", "description": "its id: call_ and 26 letters and digits"}},
        "required": ["call"],
        "additionalProperties": False,
    },
)  # for outside clients alone (RULES G5)
NOTE_LONGEST: Final = 32_000
CONTINUE: Final = Definition(
    name="oz__continue",
    description=(
        "Have the job continue as new: once this program has ended with exit code 0 and no call of it is open, the "
        "program is started afresh, with calls counted from 1 under new keys. It is given what changes of its input, "
        "your note, and what its earlier calls came to. Ask again to change what you said."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "input": {"type": "object", "description": "the inputs that change; left out, none do"},
            "note": {"type": "string", "maxLength": NOTE_LONGEST, "description": "what the next start should know"},
        },
        "additionalProperties": False,
    },
)  # for harness sessions alone (RULES G3)
SKILL_NAME: Final = "oz__skill"
DISCOVERY: Final = (FIND, CALL)
OWN_NAMES: Final = frozenset({FIND.name, CALL.name, SKILL_NAME})

_SKILL: Final = (
    "Read a skill: a text on how to do something well. Read those that fit what you are about to do before you start. "
    "Your skills:"
)


def skill_definition(index: Sequence[IndexLine]) -> Definition:
    """`oz.skill` for an agent with this index, which is a part of its description (RULES M2, M4)."""
    lines = "\n".join(f"- {line.name}: {' '.join(line.description.split())}".rstrip(": ") for line in index)
    return Definition(
        name=SKILL_NAME,
        description=f"{_SKILL}\n{lines}",
        input_schema={
            "type": "object",
            "properties": {"name": {"type": "string", "description": "as your list of skills writes it"}},
            "required": ["name"],
            "additionalProperties": False,
        },
    )


def carried(*, lazy: bool, index: Sequence[IndexLine]) -> tuple[Definition, ...]:
    """The platform's own functions that an agent's requests carry, as they are sent."""
    return (*(DISCOVERY if lazy else ()), *((skill_definition(index),) if index else ()))


def label_of(model_name: str) -> str:
    """`oz.find` for `oz__find`: how people read it."""
    return model_name.replace("__", ".", 1)
