"""The platform's own functions as a model is sent them, all under `oz__` (RULES C8, T4)."""

from typing import Final

from catalog.rules.estimates import Definition

FIND: Final = Definition(
    name="oz__find",
    description=(
        "Look for functions you may call, by words of what they do. Returns the names and first lines of those that "
        "fit best. Their parameters come with oz__describe."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "words": {"type": "string", "description": "what you want to do, in a few words"},
            "tool": {"type": "string", "description": "look into this tool only"},
        },
        "required": ["words"],
        "additionalProperties": False,
    },
)
DESCRIBE: Final = Definition(
    name="oz__describe",
    description=(
        "Get the whole definition of functions found with oz__find, their parameters included. From the next turn on "
        "you can call them."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "names": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": 20,
                "description": "names as oz__find returned them",
            }
        },
        "required": ["names"],
        "additionalProperties": False,
    },
)
SKILL: Final = Definition(
    name="oz__skill",
    description="Read one of the skills in your index: a text on how to do something well. Read it before you start.",
    input_schema={
        "type": "object",
        "properties": {"name": {"type": "string", "description": "the skill's name, as the index writes it"}},
        "required": ["name"],
        "additionalProperties": False,
    },
)
DISCOVERY: Final = (FIND, DESCRIBE)
PLATFORM: Final = {one.name: one for one in (FIND, DESCRIBE, SKILL)}
