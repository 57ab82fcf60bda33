"""`oz0-plugin.yaml`: a plugin's name, its tools, and where its agents and skills are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from catalog.rules.fields import NAME, NAME_WORDS, Fields, Notes, twice
from catalog.rules.sandbox import LEAST_MEMORY, MOST_MEMORY, Sandbox
from catalog.rules.templates import Allowed, Values, fill_text, trouble

MANIFEST: Final = "oz0-plugin.yaml"
TIMEOUT: Final = 60.0  # seconds a call may take where its tool does not say otherwise
TOOL_ID_LONGEST: Final = 48
MANUAL_MOST: Final = 8
PLUGIN_TOKENS: Final = 16_000  # what a plugin's definitions may come to where its manifest does not say otherwise
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
RESERVED_TOOL: Final = "oz"  # the platform's own functions are sent as oz__… (RULES C8)

_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One MCP server of a plugin: a program (`argv`) or a remote server (`url`). Durations are seconds.

    `url` is a whole address, or a path on the server of the connection.

    `env` names variables that the program gets; their values lie in the vault.
    `manual` names skills of the same plugin, without its prefix. `check` says per function how a person finds out
    whether a write happened (RULES U7).
    """

    id: str
    argv: tuple[str, ...] = ()
    url: str = ""
    connection: str = ""
    sandbox: Sandbox | None = None
    timeout: float = TIMEOUT
    cleanup: float = 6
    startup: float = 60
    slots: int = 16
    sensitive: bool = False
    manual: tuple[str, ...] = ()
    check: Mapping[str, str] = field(default_factory=dict)
    env: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest's own content. `agents` and `skills` are folders inside the plugin."""

    name: str
    version: str
    tools: tuple[ToolSpec, ...]
    agents: tuple[str, ...]
    skills: tuple[str, ...]
    tool_tokens: int = PLUGIN_TOKENS


def read_manifest(notes: Notes, content: bytes) -> Manifest | None:
    """The manifest in these bytes; what is wrong with it goes into `notes`. None when nothing can be read at all."""
    fields = notes.document(content)
    if fields is None:
        return None
    name = fields.name("name", "write `name: my-plugin`")
    manifest = Manifest(
        name=name,
        version=_version(fields),
        tool_tokens=fields.count("tool_tokens", PLUGIN_TOKENS, most=1_000_000),
        tools=tuple(_tool(tool, name) for tool in fields.maps("tools")),
        agents=_folders(fields, "agents"),
        skills=_folders(fields, "skills"),
    )
    for tool in sorted(twice(tool.id for tool in manifest.tools if tool.id)):
        fields.note("tools", f"the tool id {tool} is used twice", "give each tool an id of its own")
    fields.done()
    return manifest


def command(argv: tuple[str, ...], *, python: str, home: str) -> tuple[str, ...]:
    """The program to start: a leading `python` is the studio's own interpreter, `{{ home }}` its state folder."""
    filled = tuple(fill_text(word, Values(home=home)) for word in argv)
    return (python, *filled[1:]) if filled[:1] == ("python",) else filled


def tool_id_trouble(tool: str) -> str | None:
    """Why a text cannot be a tool's id (RULES C1, C8), or None when it can."""
    if not NAME.match(tool) or len(tool) > TOOL_ID_LONGEST:
        return f"it is not {NAME_WORDS} (a tool: {TOOL_ID_LONGEST})"
    if tool.lower() == RESERVED_TOOL:
        return "it is the platform's own"
    if "__" in tool:
        return "two underscores separate tool and function in the name the model sees"
    return None


def _tool(fields: Fields, plugin: str) -> ToolSpec:
    timeout = fields.number("timeout", TIMEOUT, least=1, most=3600, unit="seconds")
    tool = ToolSpec(
        id=_tool_id(fields),
        argv=_argv(fields),
        url=_url(fields),
        connection=fields.text("connection", longest=64),
        sandbox=_sandbox(fields),
        timeout=timeout,
        cleanup=fields.number("cleanup", min(6, timeout), least=0, most=timeout, unit="seconds"),
        startup=fields.number("startup", 60, least=1, most=600, unit="seconds"),
        slots=fields.count("slots", 16, most=256),
        sensitive=fields.flag("sensitive"),
        manual=_manual(fields, plugin),
        check=fields.text_map("check"),
        env=_env(fields),
    )
    if fields.has("mcp") == fields.has("url"):
        fields.note(
            "mcp",
            "a tool has either `mcp` (a program to run) or `url` (a remote server)",
            'write `mcp: ["python", "-m", "my_server"]`, or `url:` with `connection:`',
        )
    if tool.env and fields.has("url"):
        fields.note("env", "a remote server gets no variables", "give its connection a credential")
    if tool.sandbox and fields.has("url"):
        fields.note("sandbox", "a remote server cannot be sandboxed", "take `sandbox` out")
    if tool.sandbox and any("{{" in word for word in tool.argv):
        fix = "give the program what it needs inside the plugin's folder"
        fields.note("mcp", "names {{ home }}, which a sandboxed program cannot see", fix)
    fields.done()
    return tool


def _sandbox(fields: Fields) -> Sandbox | None:
    """`true`, or a map of what it asks for."""
    item = fields.take("sandbox")
    if item is None or not isinstance(item.value, dict):
        return Sandbox() if fields.flag("sandbox") else None
    asked = fields.map("sandbox")
    if asked is None:
        return None
    usual = Sandbox()
    memory = asked.count("memory", usual.memory, least=LEAST_MEMORY, most=MOST_MEMORY)
    sandbox = Sandbox(network=asked.flag("network"), memory=memory)
    asked.done()
    return sandbox


def _tool_id(fields: Fields) -> str:
    item = fields.take("id")
    if item is None:
        fields.need("id", "write `id: my_tool`")
        return ""
    why = tool_id_trouble(item.value) if isinstance(item.value, str) else "it is not text"
    if why:
        fields.note("id", f"{item.value!r} cannot be a tool's id: {why}", f"choose another id, {NAME_WORDS}")
        return ""
    return str(item.value)


def _argv(fields: Fields) -> tuple[str, ...]:
    words = fields.texts("mcp")
    if fields.has("mcp") and not words:
        fields.note("mcp", "names no program", 'write `mcp: ["python", "-m", "my_server"]`')
    for word in words:
        why = trouble(word, Allowed())
        if why:
            fields.note("mcp", f"{why}, in {word!r}", "only {{ home }}, the studio's state folder, can stand here")
    return words


def _env(fields: Fields) -> tuple[str, ...]:
    names = fields.texts("env", longest=128)
    for name in names:
        if not VARIABLE.match(name):
            fields.note("env", f"{name!r} is not the name of a variable", "write names only; values go into the vault")
    for name in sorted(twice(names)):
        fields.note("env", f"names {name} twice", "name it once")
    return names


def _url(fields: Fields) -> str:
    url = fields.text("url", longest=2_000)
    if url and not re.match(r"(https?://[^\s/@]+)?(/[^\s@\\]*)?\Z", url):
        fix = "write http:// or https:// and a host, or a path such as /mcp of the connection's server; no password"
        fields.note("url", f"{url!r} is not the address of a server", fix)
        return ""
    return url


def _manual(fields: Fields, plugin: str) -> tuple[str, ...]:
    """The skills named as a manual: at most 8, all of this plugin (RULES M1)."""
    skills: list[str] = []
    for entry in fields.texts("manual", longest=130):
        owner, slash, skill = entry.rpartition("/")
        if slash and owner != plugin:
            fields.note(
                "manual",
                f"{entry} is another plugin's skill",
                f"name skills of {plugin or 'this plugin'} only",
            )
        else:
            skills.append(skill)
    if len(skills) > MANUAL_MOST:
        fields.note("manual", f"names {len(skills)} skills, more than {MANUAL_MOST}", "join some, or leave some out")
    for skill in sorted(twice(skills)):
        fields.note("manual", f"names {skill} twice", "name it once")
    return tuple(skills)


def _version(fields: Fields) -> str:
    version = fields.text("version", longest=64)
    if not version:
        if not fields.has("version"):
            fields.need("version", 'write `version: "1.0.0"`')
        return ""
    if not _VERSION.match(version):
        fields.note("version", f"{version!r} is not a version", 'write something like "1.0.0"')
    return version


def _folders(fields: Fields, name: str) -> tuple[str, ...]:
    folders = []
    for entry in fields.texts(name, longest=200):
        parts = [part for part in entry.split("/") if part not in ("", ".")]
        if entry.startswith("/") or ".." in parts or "\\" in entry or not parts:
            fields.note(
                name,
                f"{entry!r} is not a folder inside the plugin",
                f"write a relative folder, such as `{name}/`",
            )
        else:
            folders.append("/".join(parts))
    return tuple(folders)
