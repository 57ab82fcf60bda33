"""What happens to the followed plugin: each piece of news as lines for a person, or as an object for a program."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import click

from base.figures import plural
from base.visible import visible
from catalog.rules.findings import Finding
from catalog.rules.problems import Problem

MOST_FUNCTIONS: Final = 60
MOST_FINDINGS: Final = 12
INDENT: Final = " " * 10
WAITS: Final = {"waits": "waits for a person", "sometimes": "waits at times", "refused": "is refused", "runs": "runs"}
COLOURS: Final = {"waits": "yellow", "sometimes": "yellow", "refused": "red", "runs": "green"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text and its colour, if it has one."""

    text: str
    colour: str = ""
    faint: bool = False

    def __str__(self) -> str:
        return click.style(self.text, fg=self.colour or None, dim=self.faint or None)


@dataclass(frozen=True, slots=True)
class Fate:
    """One function: its kind, its tokens, and what becomes of its calls: `runs`, `waits`, `sometimes` or `refused`.

    `why` and `fixes` (what to do, what to paste) are empty where all of them run.
    """

    label: str
    kind: str
    tokens: int | None
    fate: str
    why: str
    fixes: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """The same for a program."""
        return asdict(self) | {"fixes": [{"says": says, "paste": paste} for says, paste in self.fixes]}


@dataclass(frozen=True, slots=True)
class Begun:
    """The studio serves its pages."""

    url: str
    link: str
    state: str

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {"event": "serving", "url": self.url, "sign_in": self.link, "state": self.state}

    def lines(self) -> Iterator[Line]:
        """For a person."""
        yield Line(f"studio    {self.url}/")
        yield Line(f"sign in   {self.link}", colour="cyan")
        again = f"OZ0_HOME={self.state} oz0 sign-in-link"
        yield Line(f"{INDENT}works once, for 10 minutes; another one: {again}", faint=True)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A save that is the plugin's current version now.

    `seconds` is how long that took, and `starting` how much of it its own servers did, to start and to list themselves.
    """

    at: str
    plugin: str
    version: str
    seconds: float
    starting: float
    tokens: int
    budget: int
    agents: tuple[str, ...]
    skills: int
    functions: tuple[Fate, ...]
    findings: tuple[Finding, ...]
    changed: tuple[str, ...] = ()
    remote: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        whole = {name: getattr(self, name) for name in ("plugin", "version", "tokens", "budget", "skills")}
        return {
            "event": "loaded",
            **whole,
            "seconds": round(self.seconds, 3),
            "starting": round(self.starting, 3),
            "changed": list(self.changed),
            "agents": list(self.agents),
            "functions": [one.as_json() for one in self.functions],
            "remote": list(self.remote),
            "findings": [one.as_json() for one in self.findings],
        }

    def lines(self) -> Iterator[Line]:
        """For a person."""
        if self.changed:
            yield Line(f"{self.at}  changed {_some(self.changed, 5)}", faint=True)
        counts = [plural(len(self.functions), "function"), plural(len(self.agents), "agent")]
        counts.append(plural(self.skills, "skill"))
        tokens = f"{self.tokens:,} tokens of {self.budget:,}"
        starting = f", {self.starting:.2f} of it its server's start" if self.starting else ""
        head = f"{self.plugin} {self.version} in {self.seconds:.2f} s{starting}: {', '.join(counts)}; {tokens}"
        yield Line(f"{self.at}  loaded {head}", colour="green")
        width = max((len(visible(one.label, 60)) for one in self.functions), default=0)
        for one in self.functions[:MOST_FUNCTIONS]:
            cost = "" if one.tokens is None else f"{one.tokens:,}"
            name = f"{visible(one.label, 60):<{width}}"
            yield Line(f"{INDENT}{one.kind:<11} {cost:>6}  {name}  {WAITS[one.fate]}")
        if len(self.functions) > MOST_FUNCTIONS:
            yield Line(f"{INDENT}and {len(self.functions) - MOST_FUNCTIONS} more", faint=True)
        for tool in self.remote:
            yield Line(f"{INDENT}{tool} is a remote server: the studio lists it over its connection", faint=True)
        yield from held_lines(self.functions)
        yield from _finding_lines(self.findings)


@dataclass(frozen=True, slots=True)
class Held:
    """What policy lets run is another set by now: a rule or an approval was changed, or a remote server was listed."""

    at: str
    functions: tuple[Fate, ...]

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {"event": "policy", "functions": [one.as_json() for one in self.functions]}

    def lines(self) -> Iterator[Line]:
        """For a person."""
        held = [one for one in self.functions if one.fate != "runs"]
        said = f"{len(held)} of {plural(len(self.functions), 'function')} do not run freely now"
        yield Line(f"{self.at}  {said if held else 'every function runs freely now'}")
        yield from held_lines(self.functions)


@dataclass(frozen=True, slots=True)
class Broken:
    """A save that cannot be loaded. `goes_on` names the version before it, which goes on; empty when there is none."""

    at: str
    problems: tuple[Problem, ...]
    goes_on: str
    changed: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        problems = [asdict(one) for one in self.problems]
        return {"event": "broken", "changed": list(self.changed), "problems": problems, "goes_on": self.goes_on or None}

    def lines(self) -> Iterator[Line]:
        """For a person."""
        if self.changed:
            yield Line(f"{self.at}  changed {_some(self.changed, 5)}", faint=True)
        rest = f"{self.goes_on} goes on as it was" if self.goes_on else "no version of it runs yet"
        yield Line(f"{self.at}  not loaded; {rest}", colour="red")
        for one in self.problems:
            for text in str(one).splitlines():
                yield Line(f"{INDENT}{visible(text.strip() if text.startswith('  fix:') else text, 2_000)}")


@dataclass(frozen=True, slots=True)
class Heard:
    """A line that one of the plugin's servers said; `place` is the source that wrote it, when that is known."""

    tool: str
    source: str
    text: str
    fix: str = ""
    place: str = ""

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {"event": "said", **asdict(self)}

    def lines(self) -> Iterator[Line]:
        """For a person."""
        yield Line(f"{INDENT}{self.tool} {self.source}: {visible(self.text, 1_000)}", faint=not self.fix)
        if self.fix:
            where = f"{self.place}: " if self.place else ""
            yield Line(f"{INDENT}  {where}{self.fix}", colour="yellow")


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A file was written as it was before."""

    at: str
    changed: tuple[str, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {"event": "unchanged", "changed": list(self.changed)}

    def lines(self) -> Iterator[Line]:
        """For a person."""
        yield Line(f"{self.at}  saved as it was: {_some(self.changed, 5)}", faint=True)


type News = Begun | Loaded | Held | Broken | Heard | Unchanged


def held_lines(functions: Sequence[Fate]) -> Iterator[Line]:
    """The functions that policy does not let run freely, why, and what to paste (RULES D4, C4)."""
    for one in functions:
        if one.fate == "runs":
            continue
        yield Line(f"{INDENT}{visible(one.label, 120)} {WAITS[one.fate]}: {visible(one.why, 600)}", COLOURS[one.fate])
        for says, paste in one.fixes:
            yield Line(f"{INDENT}  fix: {visible(says, 600)}")
            for text in paste.splitlines():
                yield Line(f"{INDENT}       {visible(text, 1_000)}")


def _finding_lines(findings: Sequence[Finding]) -> Iterator[Line]:
    for one in findings[:MOST_FINDINGS]:
        first, *rest = str(one).splitlines()
        yield Line(f"{INDENT}{visible(first, 1_000)}", "red" if one.severity == "error" else "yellow")
        for text in rest:
            yield Line(f"{INDENT}{'  ' if text.startswith('  ') else ''}{visible(text.strip(), 1_000)}")
    if len(findings) > MOST_FINDINGS:
        yield Line(f"{INDENT}and {len(findings) - MOST_FINDINGS} more: `oz0 plugin lint` lists all", faint=True)


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(visible(name, 100) for name in names[:most])}{more}"
