"""The form that starts a job: drawn from the agent's own inputs, checked field by field, nothing typed is lost."""

import re
from html import unescape
from typing import Any

import pytest

from base import db, ids
from catalog.rules import filling_form
from catalog.rules.agent_input import schema_of
from catalog.rules.agents import AgentSpec, read_agent
from catalog.rules.fields import Notes
from jobs.models import Job, Starter
from jobs.operations.intake import CannotStart, start_job
from tests.builders import World, a_world
from tests.catalogs import an_agent_of
from tests.pages.visitors import text_of, visitor

NEW = "/jobs/new/"
INPUT: dict[str, Any] = {
    "account": "A-12",
    "amount": 1500,
    "urgent": False,
    "speed": "slow",
    "orders": ["o-1", "o-2"],
    "pages": [1, 2.5],
    "note": None,
    "address": {"city": "Bern"},
}
SCHEMA: dict[str, Any] = {
    "speed": {"enum": ["slow", "fast"], "description": "How fast the books are kept."},
    "amount": {"type": "integer", "minimum": 1},
}
FORM = {
    "field:account": "A-12",
    "field:amount": "1500",
    "field:urgent": "false",
    "field:speed": "slow",
    "field:orders": "o-1\no-2",
    "field:pages": "1\n2.5",
    "field:note": "",
    "json:address": '{\n  "city": "Bern"\n}',
}


@pytest.fixture
def world(database: object) -> World:
    """Two agents beside the clerk, who takes nothing."""
    world = a_world()
    an_agent_of(world, "keeper", "shop.*", input=INPUT, input_schema=SCHEMA)
    an_agent_of(world, "other", "shop.*", input={"account": "B-1", "amount": 7, "copies": 2})
    return world


def form_in(html: str) -> dict[str, str]:
    """What a browser would send of the form."""
    form = html.split('id="start-form"', 1)[1].split("</form>", 1)[0]
    sent = dict(re.findall(r'<input[^>]* name="([^"]+)"[^>]* value="([^"]*)"', form))
    for name, rest in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', form, re.S):
        chosen = re.findall(r'value="([^"]*)" selected', rest)
        sent[name] = chosen[0] if chosen else re.findall(r'value="([^"]*)"', rest)[0]
    sent |= dict(re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>(.*?)</textarea>', form, re.S))
    sent.pop("csrfmiddlewaretoken", None)
    return {name: unescape(text) for name, text in sent.items()}


def fields_of(form: dict[str, str]) -> dict[str, str]:
    """The agent's fields among what is sent."""
    return {name: text for name, text in form.items() if name.startswith(("field:", "json:"))}


def input_of(world: World, answer: Any) -> Any:
    """What the job that was started has."""
    assert answer.status_code == 302, text_of(answer)
    with db.read(world.tenant):
        return Job.objects.order_by("-pk")[0].input


def test_the_form_has_a_field_for_each_input_filled_in_with_the_agents_own(world: World) -> None:
    client = visitor(world)
    html = text_of(client.get(f"{NEW}?agent=keeper"))
    form = form_in(html)
    assert (form["agent"], form["for"]) == ("keeper", "keeper")
    assert fields_of(form) == FORM
    for told in ("whole number", "yes or no", "list of texts, one on each line", "How fast the books are kept."):
        assert told in html
    assert input_of(world, client.post(NEW, form)) == INPUT, "untouched, it is what the agent starts with"
    changed = FORM | {
        "field:account": "",
        "field:amount": "3",
        "field:urgent": "true",
        "field:speed": "fast",
        "field:orders": " o-9 \r\n\r\n o-10",
        "field:pages": "",
        "field:note": "paid",
        "json:address": '{"city": "Basel", "lines": [1]}',
    }
    assert input_of(world, client.post(NEW, form | changed | {"once": "2"})) == {
        "account": "",
        "amount": 3,
        "urgent": True,
        "speed": "fast",
        "orders": ["o-9", "o-10"],
        "pages": [1, 2.5],
        "note": "paid",
        "address": {"city": "Basel", "lines": [1]},
    }
    assert "takes no input" in text_of(client.get(f"{NEW}?agent=clerk"))


def test_what_does_not_fit_is_said_beside_its_field_and_everything_typed_stays(world: World) -> None:
    client = visitor(world)
    form = form_in(text_of(client.get(f"{NEW}?agent=keeper"))) | {"title": "October"}
    wrong = form | {
        "field:account": "<b>Z</b>",
        "field:amount": "many",
        "field:speed": "warp",
        "field:pages": "1\ntwo",
        "json:address": '{"city": ',
    }
    answer = client.post(NEW, wrong)
    html = text_of(answer)
    assert answer.status_code == 422
    assert "4 fields below need another value" in html
    for name, told in (
        ("amount", "This is not a whole number."),
        ("speed", "is not one of"),
        ("pages", "A line of it is not a number."),
        ("address", "not JSON: look"),
    ):
        (place,) = re.findall(rf'name="\w+:{name}"[^>]*aria-describedby="[^"]*(wrong-\d)"', html)
        assert told in html.split(f'id="{place}"', 1)[1][:300], name
    assert html.count('aria-invalid="true"') == 4
    kept = form_in(html)
    assert fields_of(kept) == fields_of(wrong)
    assert kept["title"] == "October"
    low = client.post(NEW, form | {"field:amount": "0"})
    assert "0 is less than the minimum of 1" in text_of(low)
    with db.read(world.tenant):
        assert not Job.objects.exists()


def test_another_agent_is_chosen_without_a_script_and_what_both_take_stays(world: World) -> None:
    client = visitor(world)
    form = form_in(text_of(client.get(f"{NEW}?agent=keeper"))) | {"agent": "other", "title": "T"}
    shown = form_in(text_of(client.post(NEW, form | {"field:account": "Z-9", "do": "show"})))
    assert fields_of(shown) == {"field:account": "Z-9", "field:amount": "7", "field:copies": "2"}
    assert (shown["for"], shown["title"]) == ("other", "T")
    assert input_of(world, client.post(NEW, form)) == {"account": "B-1", "amount": 7, "copies": 2}
    touched = client.post(NEW, form | {"field:account": "Z-9", "once": "b"})
    assert touched.status_code == 422, "typed for the agent before: it is shown before it starts another one"
    assert "The fields were those of keeper" in text_of(touched)
    assert fields_of(form_in(text_of(touched)))["field:account"] == "Z-9"
    swapped = client.post(f"{NEW}?do=show", form, headers={"HX-Request": "true", "HX-Target": "job-input"})
    assert text_of(swapped).startswith("<fieldset"), "the part alone"


def test_json_is_the_other_way_to_say_the_same(world: World) -> None:
    client = visitor(world)
    form = form_in(text_of(client.get(f"{NEW}?agent=keeper")))
    text = form_in(text_of(client.post(NEW, form | {"field:account": "J-1", "do": "json"})))
    assert '"account": "J-1"' in text["input"]
    assert not fields_of(text)
    back = form_in(text_of(client.post(NEW, text | {"do": "fields"})))
    assert fields_of(back) == FORM | {"field:account": "J-1"}
    broken = client.post(NEW, text | {"input": '{"account": ', "do": "fields"})
    assert (broken.status_code, form_in(text_of(broken))["input"]) == (422, '{"account": ')
    below = client.post(NEW, text | {"input": '{"amount": 0}'})
    assert below.status_code == 422
    assert "amount: 0 is less than the minimum of 1" in text_of(below)
    assert input_of(world, client.post(NEW, text | {"input": '{"note": 7}'}))["note"] == 7, "what no field says"


def test_a_job_is_run_again_with_what_it_had(world: World) -> None:
    given = {"account": "again", "note": 5, "address": {"city": "\u202e"}}
    job = start_job(
        tenant=world.tenant,
        agent="keeper",
        given=given,
        starter=Starter.PERSON,
        person=world.person,
    )
    html = text_of(visitor(world).get(f"{NEW}?agent=keeper&from={ids.show(ids.JOB, job)}"))
    form = form_in(html)
    assert (form["field:account"], form["json:note"]) == ("again", "5")
    assert "\\u202e" in form["json:address"], "hidden characters are told, not hidden"
    assert input_of(world, visitor(world).post(NEW, form)) == INPUT | given


def test_whoever_starts_is_held_to_what_the_file_asks(world: World) -> None:
    with pytest.raises(CannotStart, match=r"speed: 'warp' is not one of \['slow', 'fast'\]"):
        start_job(tenant=world.tenant, agent="keeper", given={"speed": "warp"}, starter=Starter.API_KEY, person=None)


def test_an_agents_file_says_what_its_inputs_take() -> None:
    head = "name: a\nmodel: rehearsal\nrehearsal: [{say: hi}]\ninput: {speed: slow, pages: 2}\ninput_schema:\n"
    notes = Notes("agents/a.yaml")
    agent = read_agent(notes, f"{head}  speed: {{enum: [slow, fast]}}\n".encode())
    assert agent is not None and not notes.problems
    assert schema_of(agent)["properties"] == {
        "speed": {"type": "string", "enum": ["slow", "fast"]},
        "pages": {"type": "number"},
    }
    for wrong, told in (
        ("  sped: {type: string}\n", "is no input of the agent"),
        ("  speed: fast\n", "is not a JSON Schema"),
        ("  pages: {type: integer, minimum: 3}\n", "does not take the input's own default: 2 is less"),
        ("  pages: {$ref: 'https://x.example/s'}\n", "cannot be used as a JSON Schema"),
    ):
        notes = Notes("agents/a.yaml")
        read_agent(notes, (head + wrong).encode())
        assert told in "\n".join(map(str, notes.problems)), wrong


def test_every_input_has_a_field_or_says_it_in_json() -> None:
    many = AgentSpec("a", input={f"n{n}": n for n in range(filling_form.MOST + 1)})
    assert filling_form.fields(schema_of(many), dict(many.input), json_fields=True) is None, "too many: one text"
    odd = AgentSpec("a", input={"s": "\u202e", "l": ["a\nb"], "e": [], "t": [[1]], "d": {}, "m": [1, "a"]})
    found = filling_form.fields(schema_of(odd), dict(odd.input), json_fields=True)
    assert found is not None
    assert {one.name: one.type for one in found} == dict.fromkeys("sledtm", filling_form.JSON) | {"e": "JSON"}
    assert filling_form.typed(found) == odd.input, "and what is not touched stays as it is"
