"""A plugin's files: what is read, and what every mistake is told."""

import json
from typing import Any

import pytest

from catalog.rules.agents import AgentSpec, Limits, RehearsalCall, RunBounds, fill_turn
from catalog.rules.kept_agents import as_json, from_json
from catalog.rules.manifest import command
from catalog.rules.plugins import PluginSpec, digest_of, read_plugin
from catalog.rules.problems import BadPlugin
from catalog.rules.sandbox import Sandbox
from catalog.rules.templates import Values
from jobs.rules.limits import own_limit

MANIFEST = """\
name: billing
version: "1.0.0"
tools:
  - id: billing
    mcp: ["python", "-m", "billing_server", "--state", "{{ home }}/demo/billing"]
    timeout: 30
    manual: [how-to-bill, billing/when-not-to]
    check: {note: Look into the ledger.}
agents: [agents/]
skills: [skills]
"""
AGENT = """\
name: clerk
model: rehearsal
instructions: Bill what is asked.
functions: [billing.charge, "billing.list_*"]
limits: {turns: 5}
on_unknown: ask
input: {order: o-1, amount: 500}
rehearsal:
  - say: I charge {{ input.order }}.
    call:
      - function: billing.charge
        arguments: {order_id: "{{ input.order }}", amount: "{{ input.amount }}"}
  - call:
      - {function: billing.list_ledger}
      - function: billing.list_ledger
        arguments: {after: "{{ results.0 }}"}
  - say: "It says: {{ last }}"
"""
BARE = """\
name: clock
version: "1.0.0"
tools:
  - id: clock
    mcp: ["python", "-m", "clock_server"]
"""
SKILL = "---\nname: {name}\ndescription: How it is done.\n---\nFirst look, then charge.\n"


def files(**changed: str) -> dict[str, bytes]:
    texts = {
        "oz0-plugin.yaml": MANIFEST,
        "agents/clerk.yaml": AGENT,
        "skills/a.md": SKILL.format(name="how-to-bill"),
        "skills/b/SKILL.md": SKILL.format(name="when-not-to"),
        "billing_server.py": "",
    }
    texts |= {{"manifest": "oz0-plugin.yaml", "agent": "agents/clerk.yaml"}.get(k, k): v for k, v in changed.items()}
    return {path: text.encode() for path, text in texts.items()}


def problems(**changed: str) -> list[str]:
    with pytest.raises(BadPlugin) as caught:
        read_plugin(files(**changed))
    for problem in caught.value.problems:
        assert problem.file
        assert problem.fix
        assert problem.line
    return [f"{p.file}:{p.line} {p.key}: {p.message}" for p in caught.value.problems]


@pytest.fixture(scope="module")
def plugin() -> PluginSpec:
    return read_plugin(files())


def test_a_manifest_is_read_with_the_defaults_of_what_it_leaves_out(plugin: PluginSpec):
    (tool,) = plugin.tools
    assert (plugin.name, plugin.version, plugin.tool_tokens) == ("billing", "1.0.0", 16_000)
    assert (tool.id, tool.timeout, tool.cleanup, tool.startup, tool.slots) == ("billing", 30, 6, 60, 16)
    assert tool.manual == ("how-to-bill", "when-not-to")
    assert tool.check == {"note": "Look into the ledger."}
    assert [skill.name for skill in plugin.skills] == ["how-to-bill", "when-not-to"]
    assert plugin.skills[0].text == "First look, then charge."


def test_a_tool_that_names_no_time_limit_has_one():
    """CASES L07."""
    (tool,) = read_plugin(files(manifest=MANIFEST.replace("    timeout: 30\n", ""))).tools
    assert (tool.timeout, own_limit(tool.timeout)) == (60, 58)


def test_a_programs_words_are_completed_for_this_machine(plugin: PluginSpec):
    words = command(plugin.tools[0].argv, python="/opt/py", home="/srv/oz0")
    assert words == ("/opt/py", "-m", "billing_server", "--state", "/srv/oz0/demo/billing")
    assert command(("uvx", "python"), python="/opt/py", home="") == ("uvx", "python")


def test_an_agent_is_read_with_its_limits_and_survives_being_kept_as_json(plugin: PluginSpec):
    (agent,) = plugin.agents
    assert agent.limits == Limits(tool_tokens=8_000, turns=5)
    assert (agent.on_unknown, agent.tool_loading, len(agent.rehearsal)) == ("ask", "eager", 3)
    assert from_json(json.loads(json.dumps(as_json(agent)))) == agent


def test_how_long_a_run_may_become_is_read_and_survives_being_kept_as_json():
    def runs(line: str) -> RunBounds:
        agent = f"name: clerk\nmodel: openai:x\n{line}"
        (found,) = read_plugin(files(agent=agent)).agents
        assert from_json(json.loads(json.dumps(as_json(found)))) == found
        return found.runs

    assert runs("") == RunBounds(tokens=100_000, turns=0)
    assert runs("continue_as_new: {tokens: 0, turns: 40}\n") == RunBounds(tokens=0, turns=40)


def test_a_rehearsals_turn_speaks_of_this_jobs_input_and_results(plugin: PluginSpec):
    (agent,) = plugin.agents
    values = Values(input={"amount": 700}, defaults=agent.input, results=("charged once",), last="two lines")
    first, second, third = (fill_turn(turn, values) for turn in agent.rehearsal)
    assert first.say == "I charge o-1."
    assert first.calls == (RehearsalCall("billing", "charge", {"order_id": "o-1", "amount": 700}),)
    assert second.calls[1].arguments == {"after": "charged once"}
    assert third.say == "It says: two lines"


def test_the_digest_changes_with_any_byte_and_any_name_but_not_with_their_order():
    whole = files()
    assert digest_of(whole) == digest_of(dict(reversed(whole.items()))) == read_plugin(whole).digest
    assert digest_of(whole) != digest_of(whole | {"billing_server.py": b"#"})
    assert digest_of({"a": b"1", "b": b"2"}) != digest_of({"a": b"2", "b": b"1"})


def test_a_folder_without_a_manifest_is_no_plugin():
    with pytest.raises(BadPlugin, match="no manifest"):
        read_plugin({"README.md": b""})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("timeout: 30", "timout: 30", "oz0-plugin.yaml:6 tools[0].timout: is not a known key"),
        (
            "timeout: 30",
            "timeout: 4000",
            ":6 tools[0].timeout: expected a number of seconds from 1 to 3600, found the number 4000",
        ),
        ("timeout: 30", "timeout: soon", "found the text 'soon'"),
        ("timeout: 30", "timeout: true", "found the word true"),
        ("timeout: 30", "cleanup: 61", "tools[0].cleanup: expected a number of seconds from 0 to 60"),
        ("timeout: 30", "slots: 1.5", "tools[0].slots: expected a whole number"),
        ("timeout: 30", "sensitive: yes", "tools[0].sensitive: expected true or false, found the text 'yes'"),
        ("timeout: 30", "timeout: 30\n    timeout: 31", "the key 'timeout' is here twice, first on line 6"),
        ("- id: billing", "- id: oz", "tools[0].id: 'oz' cannot be a tool's id: it is the platform's own"),
        ("- id: billing", "- id: a__b", "tools[0].id: 'a__b' cannot be a tool's id: two underscores"),
        ("- id: billing", "- id: 7", "tools[0].id: 7 cannot be a tool's id: it is not text"),
        ("    timeout: 30\n", "    url: https://x.example/mcp\n", "a tool has either `mcp`"),
        ("agents: [a", "  - {id: billing, mcp: [x]}\nagents: [a", "the tool id billing is used twice"),
        ('["python", "-m", "billing_server", "--state", "{{ home }}/demo/billing"]', "[]", "names no program"),
        ("{{ home }}", "{{ input.x }}", "{{ input.x }} does not exist here"),
        ("agents: [agents/]", "agents: [../agents]", "'../agents' is not a folder inside the plugin"),
        ("agents: [agents/]", "agents: agents/", "agents: expected a list, found the text 'agents/'"),
        ("agents: [agents/]", "agents: [agent/]", "oz0-plugin.yaml:9 agents: agent/ holds no .yaml file"),
        ('version: "1.0.0"', "version: 1.0", "version: expected text, found the number 1.0"),
        ('version: "1.0.0"\n', "", "oz0-plugin.yaml:1 version: is missing"),
        ("name: billing\n", "name: bill ing\n", "oz0-plugin.yaml:1 name: 'bill ing' is not a name"),
    ],
)
def test_a_mistake_in_the_manifest_is_told_with_file_line_and_key(old: str, new: str, told: str):
    assert old in MANIFEST
    assert any(told in problem for problem in problems(manifest=MANIFEST.replace(old, new, 1)))


@pytest.mark.rule("M1")
@pytest.mark.parametrize(
    ("manual", "told"),
    [
        ("[other/how-to-bill]", "other/how-to-bill is another plugin's skill"),
        ("[how-to-blil]", "oz0-plugin.yaml:7 tools[0].manual: how-to-blil is not a skill of this plugin"),
        (f"[{', '.join(f's{n}' for n in range(9))}]", "names 9 skills, more than 8"),
        ("[how-to-bill, billing/how-to-bill]", "names how-to-bill twice"),
    ],
)
def test_a_manual_names_at_most_eight_skills_of_its_own_plugin(manual: str, told: str):
    changed = MANIFEST.replace("[how-to-bill, billing/when-not-to]", manual)
    assert any(told in problem for problem in problems(manifest=changed))


@pytest.mark.rule("M1")
def test_a_manual_of_eight_skills_is_taken_with_or_without_the_plugins_name():
    named = [f"s{n}" for n in range(8)]
    changed = MANIFEST.replace("[how-to-bill, billing/when-not-to]", f"[billing/{', '.join(named)}]")
    skills = {f"skills/{name}.md": SKILL.format(name=name) for name in named}
    assert read_plugin(files(manifest=changed, **skills)).tools[0].manual == tuple(named)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("on_unknown: ask", "on_unknown: retry", "agents/clerk.yaml:6 on_unknown: 'retry' is not one of ask, fail"),
        ("on_unknown: ask", "on_unknow: ask", "on_unknow: is not a known key"),
        ("{turns: 5}", "{turns: 0}", "limits.turns: expected a whole number from 1 to 10,000, found the number 0"),
        ("{turns: 5}", "{token: 5}", "limits.token: is not a known key"),
        ("model: rehearsal\n", "model: anthropic:x\n", "`model: rehearsal` and a `rehearsal` list belong together"),
        ("model: rehearsal\n", "model: rehearsal\nharness: [x]\n", "either `model` or `harness`"),
        ("billing.charge,", "charge,", "'charge' grants nothing: it has no dot"),
        ("function: billing.charge", "function: billing.refund", "billing.refund is not among the agent's functions"),
        ("function: billing.charge", "function: charge", "charge is not among the agent's functions"),
        (
            "I charge {{ input.order }}",
            "I charge {{ input.oder }}",
            ":9 rehearsal[0].say: {{ input.oder }} does not exist here",
        ),
        ("I charge {{ input.order }}", "I read {{ last }}", "rehearsal[0].say: {{ last }} does not exist here"),
        (
            "{{ results.0 }}",
            "{{ results.1 }}",
            "rehearsal[1].call[1].arguments.after: {{ results.1 }} does not exist here",
        ),
        ("{{ results.0 }}", "{{ results.0", "a placeholder is not closed"),
        ('  - say: "It says: {{ last }}"\n', "", "rehearsal[1].call: the last turn still calls"),
        (
            "  - say: I charge {{ input.order }}.\n    call:",
            "  - say: Wait.\n  - call:",
            "rehearsal[0].say: a turn without calls ends the job",
        ),
        ('  - say: "It says: {{ last }}"\n', "  - {}\n", "says nothing and calls nothing"),
        ('say: "It says: {{ last }}"\n', "continue_as_new: {}\n", "continue_as_new: nothing comes after the last turn"),
        ("  - call:\n", "  - continue_as_new: {}\n    call:\n", "a turn that calls does not end its run"),
        (
            '  - say: "It says: {{ last }}"\n',
            "  - continue_as_new: {oder: 1}\n  - say: Done.\n",
            "continue_as_new.oder: is no input of the agent",
        ),
        (
            '  - say: "It says: {{ last }}"\n',
            '  - continue_as_new: {}\n  - say: "It says: {{ last }}"\n',
            "{{ last }} does not exist here",
        ),
        ("on_unknown: ask", "continue_as_new: {turns: 3}", "continue_as_new: bounds the conversation with a model"),
        ("on_unknown: ask", "continue_as_new: {turn: 3}", "continue_as_new.turn: is not a known key"),
        ("on_unknown: ask", "continue_as_new: {tokens: -1}", "continue_as_new.tokens: expected a whole number from 0"),
        ("instructions: Bill what is asked.", "instructions: 7", "instructions: expected text, found the number 7"),
    ],
)
def test_a_mistake_in_an_agent_is_told_with_file_line_and_key(old: str, new: str, told: str):
    assert old in AGENT
    assert any(told in problem for problem in problems(agent=AGENT.replace(old, new, 1)))


def test_two_agents_or_skills_of_one_name_are_both_named():
    found = problems(**{"agents/other.yaml": AGENT, "skills/c.md": SKILL.format(name="how-to-bill")})
    assert [problem.split(":")[0] for problem in found] == [
        "agents/clerk.yaml", "agents/other.yaml", "skills/a.md", "skills/c.md",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("skill", "told"),
    [
        ("No front.", "skills/a.md:1 : does not begin with its name and description"),
        ("---\nname: how-to-bill\nx: 1\n---\nText.", "skills/a.md:3 x: is not a known key"),
        ("---\nname: how-to-bill\n---\n", "skills/a.md:3 : has no text"),
    ],
)
def test_a_mistake_in_a_skill_is_told_with_its_line(skill: str, told: str):
    assert any(told in problem for problem in problems(**{"skills/a.md": skill}))


def test_one_reading_tells_every_mistake_of_every_file():
    found = problems(manifest=MANIFEST.replace("timeout: 30", "timeout: x"), agent=AGENT.replace("ask", "x"))
    assert [problem.split(" ")[0] for problem in found] == ["agents/clerk.yaml:6", "oz0-plugin.yaml:6"]


@pytest.mark.parametrize("bad", [b"\xff\xfe", b"- a list", b"", b"a: &a [*a]"])
@pytest.mark.parametrize("path", ["oz0-plugin.yaml", "agents/clerk.yaml"])
def test_a_file_that_is_no_map_is_refused_by_name(bad: bytes, path: str):
    with pytest.raises(BadPlugin) as caught:
        read_plugin(files() | {path: bad})
    assert {problem.file for problem in caught.value.problems} == {path}


def test_an_agent_kept_by_an_older_version_reads_back_whole():
    kept: dict[str, Any] = json.loads(json.dumps(as_json(AgentSpec(name="a", harness=("x",), functions=("t.*",)))))
    del kept["runs"]
    assert from_json(kept) == AgentSpec(name="a", harness=("x",), functions=("t.*",))


def test_a_sandbox_is_asked_for_in_a_word_or_with_what_it_needs() -> None:
    def asked(line: str) -> Sandbox | None:
        return read_plugin(files(manifest=f"{BARE}    sandbox: {line}\n")).tools[0].sandbox

    assert asked("true") == Sandbox(network=False, memory=1024)
    assert asked("false") is None
    assert asked("{network: true, memory: 256}") == Sandbox(network=True, memory=256)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sandbox: soon", "sandbox: expected true or false, found the text 'soon'"),
        ("sandbox: {memory: 8}", "sandbox.memory: expected a whole number from 64 to 65,536, found the number 8"),
        ("sandbox: {net: true}", "sandbox.net: is not a known key"),
    ],
)
def test_what_a_sandbox_cannot_be_is_told(line: str, told: str) -> None:
    (problem,) = problems(manifest=f"{BARE}    {line}\n")
    assert problem.endswith(told)


def test_a_sandboxed_program_cannot_be_given_the_state_folder() -> None:
    manifest = BARE.replace('"-m"', '"{{ home }}/x"') + "    sandbox: true\n"
    (problem,) = problems(manifest=manifest)
    assert problem.endswith("tools[0].mcp: names {{ home }}, which a sandboxed program cannot see")


@pytest.mark.rule("T4")
@pytest.mark.rule("C8")
@pytest.mark.parametrize(
    ("loading", "call", "told"),
    [
        ("eager", "{function: oz.skill, arguments: {name: how-to-bill}}", ""),
        ("eager", "{function: oz.find, arguments: {query: charge}}", "oz.find comes with `tool_loading: lazy`"),
        ("lazy", "{function: oz.find, arguments: {query: charge}}", ""),
        ("lazy", "{function: oz.describe}", "the platform has no function oz.describe"),
        ("lazy", "{function: oz.call, arguments: {function: billing__charge, arguments: {order_id: o-1}}}", ""),
        ("lazy", '{function: oz.call, arguments: {function: "{{ input.order }}"}}', ""),
        ("lazy", "{function: oz.call, arguments: {function: billing.refund}}", "billing.refund is not among"),
        ("lazy", "{function: oz.call, arguments: {function: oz__skill}}", "oz.skill is the platform's own"),
    ],
)
def test_a_rehearsal_calls_the_platforms_own_functions_that_its_agent_has(loading: str, call: str, told: str):
    agent = AGENT.replace("on_unknown: ask", f"on_unknown: ask\ntool_loading: {loading}")
    agent = agent[: agent.index("rehearsal:")] + f"rehearsal:\n  - call: [{call}]\n  - say: done\n"
    if told:
        assert any(told in problem for problem in problems(agent=agent))
    else:
        (read,) = read_plugin(files(agent=agent)).agents
        assert read.rehearsal[0].calls[0].tool == "oz"


def test_a_skill_is_a_file_or_a_folder_with_a_skill_file_whose_other_files_are_not_read():
    """The public format's front matter is taken, a mark at the file's start too."""
    text = "\ufeff---\nname: pack\ndescription: How to pack.\nlicense: MIT\nmetadata: {by: us}\n---\nFold, then pack.\n"
    found = read_plugin(files(**{"skills/pack/SKILL.md": text, "skills/pack/refs/more.md": "no front part\n"}))
    (pack,) = [skill for skill in found.skills if skill.name == "pack"]
    assert (pack.description, pack.text) == ("How to pack.", "Fold, then pack.")
    assert any("does not begin with its name" in one for one in problems(**{"skills/alone.md": "no front part\n"}))
