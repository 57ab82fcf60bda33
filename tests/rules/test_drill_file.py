"""`oz0-drill.yaml` is read strictly: what is wrong with it is named by line and key, with the fix."""

import pytest

from catalog.rules.drill_file import Before, Effects, drill_problems, read_drill
from catalog.rules.plugins import read_plugin

MANIFEST = b"""name: shop
version: "1"
tools:
  - {id: shop, mcp: [python, -m, shop]}
  - {id: far, url: https://a.example/}
"""
WHOLE = """
tools:
  - id: shop
    mcp: [python, drilled.py, "{{ home }}"]
    trouble: "{{ home }}/drill.json"
    effects: {sqlite: "{{ home }}/shop.sqlite", query: SELECT 1}
    keys_kept: 48
    functions:
      buy:
        arguments: {title: Tides, copies: 2}
        other: {copies: 3}
        lasts: {seconds: 5}
        effect: {event: bought}
        before: [{function: open_shop, arguments: {day: monday}}]
        busy: false
      print: {runs_on: it prints, at_once: true}
      burn: {skip: it burns}
"""


def files(text: str) -> dict[str, bytes]:
    return {"oz0-plugin.yaml": MANIFEST, "oz0-drill.yaml": text.encode()}


def test_everything_in_it_is_read() -> None:
    found = read_drill(read_plugin(files(WHOLE)), files(WHOLE))["shop"]
    assert found.argv == ("python", "drilled.py", "{{ home }}")
    assert (found.trouble, found.keys_kept) == ("{{ home }}/drill.json", 48)
    assert found.effects == Effects(sqlite="{{ home }}/shop.sqlite", query="SELECT 1")
    buy = found.functions["buy"]
    assert (buy.arguments, buy.other, buy.busy) == ({"title": "Tides", "copies": 2}, {"copies": 3}, False)
    assert (buy.lasts, buy.effect) == ({"seconds": 5}, {"event": "bought"})
    assert buy.before == (Before("open_shop", {"day": "monday"}),)
    assert (found.functions["print"].runs_on, found.functions["burn"].skip) == ("it prints", "it burns")
    assert found.functions["print"].busy


def test_a_plugin_needs_none() -> None:
    assert read_drill(read_plugin(files(WHOLE)), {"oz0-plugin.yaml": MANIFEST}) == {}


@pytest.mark.parametrize(
    ("changed", "to", "said"),
    [
        ("id: shop", "id: shed", "shed is not a tool of this plugin"),
        ("id: shop", "id: far", "far is a remote server"),
        ("trouble:", "troubles:", "is not a known key"),
        ("keys_kept: 48", "keys_kept: 2", "expected a number of hours from 24"),
        ('    trouble: "{{ home }}/drill.json"\n', "", "can be tried only where"),
        ("query: SELECT 1", "file: shop.jsonl", "effects are seen in one way"),
        (", query: SELECT 1", "", "effects are seen in one way"),
        ("{{ home }}/drill.json", "{{ input.x }}", "does not exist here"),
        ("title: Tides", 'title: "{{ secret }}"', "does not exist here"),
        ("arguments: {title: Tides, copies: 2}", "arguments: [1]", "expected a map of names and values"),
        ("function: open_shop, ", "", "is missing"),
        ("tools:", "tools: 1\nmore:", "is not a known key"),
        (WHOLE, "- a", "expected a map"),
    ],
)
def test_what_is_wrong_is_named_with_the_fix(changed: str, to: str, said: str) -> None:
    text = WHOLE.replace(changed, to)
    problems = drill_problems(read_plugin(files(WHOLE)), files(text))
    assert any(said in f"{problem.key} {problem.message}" and problem.fix for problem in problems), problems
    assert {problem.file for problem in problems} == {"oz0-drill.yaml"}
