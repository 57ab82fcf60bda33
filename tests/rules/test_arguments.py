"""Arguments against schemas, also against schemas that nobody can use."""

import socket
from typing import Any

import pytest

from jobs.rules.arguments import misfit, unkeepable

REFUND = {
    "type": "object",
    "properties": {"order": {"type": "integer"}, "lines": {"type": "array", "items": {"type": "string"}}},
    "required": ["order"],
}


@pytest.mark.rule("A3")
@pytest.mark.parametrize(
    ("arguments", "path"),
    [({}, "$:"), ({"order": "7"}, "$.order:"), ({"order": 7, "lines": ["a", 2]}, "$.lines[1]:")],
)
def test_arguments_that_break_the_schema_are_named_by_their_path(arguments: Any, path: str) -> None:
    assert misfit(arguments, REFUND).startswith(path)


@pytest.mark.rule("A3")
def test_arguments_that_fit_have_no_trouble() -> None:
    assert misfit({"order": 7, "lines": ["a"]}, REFUND) == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strnig"},
        {"$ref": "#"},
        {"$ref": "#/definitions/none"},
        {"$dynamicRef": "#nowhere"},
        {"$schema": ["2020-12"]},
        {"$schema": "http://nobody.example/schema", "type": "object"},
        {"properties": {"order": {"pattern": "("}}},
    ],
)
def test_a_schema_that_cannot_be_used_refuses_nothing_and_breaks_nothing(schema: dict[str, Any]) -> None:
    assert misfit({"order": "7"}, schema) == ""


def test_nothing_is_fetched_for_a_schema_that_points_elsewhere() -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        port = elsewhere.getsockname()[1]
        assert misfit({}, {"$ref": f"http://127.0.0.1:{port}/schema.json"}) == ""
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


@pytest.mark.parametrize(
    ("value", "path"),
    [("a\0", "$:"), ({"a": ["x", "\0"]}, "$.a[1]:"), ({"a\0b": 1}, "$: a key")],
)
def test_the_one_character_that_cannot_be_kept_is_named_by_its_path(value: Any, path: str) -> None:
    assert unkeepable(value).startswith(path)
    assert unkeepable({"a": ["ordinary", 1, None, True]}) == ""
