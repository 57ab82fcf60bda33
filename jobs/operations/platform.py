"""The platform's own functions, answered by the studio as a job's calls are taken in (RULES C8, M2, M3, T4).

`oz.skill` and `oz.find` need no node: their answer is there in the transaction that takes the call in. `oz.call` is no
call of its own. What it names is taken in as if the model had called that itself, and judged, held, made and counted
so; only what its model reads of its past says how it asked.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from base import canonical, db
from catalog.queries import functions, looking_up, skills
from catalog.rules.agents import AgentSpec
from catalog.rules.estimates import Definition, as_sent
from catalog.rules.grants import SEPARATOR
from catalog.rules.kept_agents import from_json
from catalog.rules.looking_up import near
from catalog.rules.platform import (
    CALL,
    DISCOVERY,
    FIND,
    FIND_MOST,
    FIND_USUAL,
    OWN_NAMES,
    SKILL_NAME,
    skill_definition,
)
from catalog.rules.requests import definitions
from catalog.rules.skills import IndexLine, meant
from jobs.models import Call, Job
from jobs.operations import events
from jobs.queries.tables import JOBS
from jobs.rules.turns import Wanted

FOUND_LONGEST: Final = 48_000  # characters of definitions in one answer; the best one is told whole, however long
NAMED_MOST: Final = 100
LISTED_MOST: Final = 20  # functions that are all named to a model which called one that is not there


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as it is taken in. `through` is `oz__call` where the model asked for it so."""

    want: Wanted
    through: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """What one of the platform's own functions answers."""

    text: str
    is_error: bool = False
    read: IndexLine | None = None
    about: str = ""  # for the people who read the trace


def sent(job: Job, agent: AgentSpec) -> tuple[Definition, ...]:
    """The definitions that a request of a job's model carries now, as the agent's page shows them (RULES C6)."""
    return Platform(job, functions.granted(job.agent_id)).sent(agent)


class Platform:
    """The platform's own functions as one job has them. `available` are the functions it is granted, by model name."""

    def __init__(self, job: Job, available: Mapping[str, UUID]) -> None:
        self._job: Final = job
        self._available: Final = available

    def taken(self, want: Wanted) -> Asked:
        """The call a model means: through `oz.call`, the one it names; else the one it made."""
        if want.model_name != CALL.name or not self._lazy:
            return Asked(want)
        value = _object(want.arguments)
        named, inner = self._named(value.get("function")), value.get("arguments", {})
        fits = isinstance(inner, dict | str) and not value.keys() - {"function", "arguments"}
        if named is None or named not in self._available or not fits:
            return Asked(want)  # which is then told what is wrong
        return Asked(replace(want, model_name=named, arguments=inner), CALL.name)

    def sent(self, agent: AgentSpec) -> tuple[Definition, ...]:
        """All definitions, in the order they are sent."""
        names = [] if self._lazy else sorted(self._available)
        return definitions(agent, looking_up.definitions([self._available[name] for name in names]), self._index)

    def definition(self, name: str) -> Definition | None:
        """One of its own functions as the model is sent it, or None when this job has none of that name."""
        if name == SKILL_NAME:
            return skill_definition(self._index) if self._index else None
        return next((one for one in DISCOVERY if one.name == name), None) if self._lazy else None

    def unknown(self, name: str) -> str:
        """What a model reads that called a function which it does not have, with the names that are near."""
        if name in OWN_NAMES:
            comes = "no skill is in this agent's index" if name == SKILL_NAME else "it comes with tool_loading: lazy"
            return f"{name} is not here: {comes}"
        found = near(name, self._available)
        known = sorted(self._available)
        more = f" and {len(known) - LISTED_MOST:,} more" if len(known) > LISTED_MOST else ""
        said = f"; near it: {', '.join(found)}" if found else ""
        return f"there is no function of that name{said}; there are: {', '.join(known[:LISTED_MOST]) or 'none'}{more}"

    def misnamed(self, name: str, arguments: Any) -> str:
        """What is wrong with the function that `oz.call` was to call; nothing for any other of its own."""
        named = self._named(arguments.get("function")) if name == CALL.name and isinstance(arguments, dict) else None
        if named is None or named in self._available:
            return ""
        if named.startswith(f"oz{SEPARATOR}"):
            return f"{named} is the platform's own: call it itself, not through {CALL.name}"
        return f"{named}: {self.unknown(named)}"

    def taint(self, call: Call, line: IndexLine) -> None:
        """Taint the job that read another plugin's manual: from now on, also for calls that wait (RULES M3).

        The caller holds the job alone. The first such manual is the one that is told.
        """
        job = self._job
        if job.tainted_at is not None or not line.taints(self._plugin):
            return
        job.tainted_at, job.tainted_by = db.must_write(), line.name
        JOBS.update(job.pk, {"tainted_at": job.tainted_at, "tainted_by": job.tainted_by})
        events.record(job.pk, "job.tainted", call=call.pk, skill=line.name, tools=list(line.manual_of))

    def answer(self, name: str, arguments: Mapping[str, Any]) -> Said:
        """What `oz.find` or `oz.skill` says to arguments that fit its schema."""
        return self._found(arguments) if name == FIND.name else self._skill(arguments["name"])

    def _found(self, arguments: Mapping[str, Any]) -> Said:
        names = looking_up.ranked(self._available, arguments["query"])
        most = min(arguments.get("limit", FIND_USUAL), FIND_MOST)
        told: list[str] = []
        for one in looking_up.definitions([self._available[name] for name in names[:most]]):
            text = as_sent(one)
            if told and sum(map(len, told)) + len(text) > FOUND_LONGEST:
                break
            told.append(text)
        rest = names[len(told) :]
        about = {"of": len(self._available), "also_fit": rest[:NAMED_MOST], "not_named": len(rest[NAMED_MOST:])}
        if not names:
            about["note"] = "nothing fits these words; try other ones, or none at all for every name"
        said = json.dumps({key: value for key, value in about.items() if value}, ensure_ascii=False)
        text = f'{{"functions":[{",".join(told)}],{said[1:]}' if len(said) > 2 else '{"functions":[]}'
        return Said(text, about=f"{len(told)} of {len(self._available):,} functions found")

    def _skill(self, name: str) -> Said:
        line = meant(self._index, name, self._plugin)
        if line is None:
            there = ", ".join(one.name for one in self._index)
            return Said(f"There is no skill {name!r} in your index. There are: {there}", is_error=True)
        manual = ", another plugin's manual" if line.taints(self._plugin) else ""
        return Said(skills.text_of(self._library.ids[line.name]), read=line, about=f"read {line.name}{manual}")

    def _named(self, name: Any) -> str | None:
        """A function by the name its definition says, also where it is written as people do: `tool.function`."""
        return name.replace(".", SEPARATOR, 1) if isinstance(name, str) else None

    @cached_property
    def _lazy(self) -> bool:
        return self._spec.tool_loading == "lazy"

    @cached_property
    def _spec(self) -> AgentSpec:
        return from_json(self._job.agent.definition)

    @cached_property
    def _plugin(self) -> str:
        return self._job.agent.plugin_version.plugin.name

    @cached_property
    def _library(self) -> skills.Library:
        return skills.library_of(self._job.agent)

    @cached_property
    def _index(self) -> tuple[IndexLine, ...]:
        tools = {name.partition(SEPARATOR)[0] for name in self._available}
        return self._library.index(self._plugin, self._spec.skills, tools)


def _object(arguments: Any) -> Mapping[str, Any]:
    """The arguments as a map; an empty one where they are none, which the schema then says."""
    try:
        value = canonical.parse(arguments) if isinstance(arguments, str) else arguments
    except canonical.NotCanonical:
        return {}
    return value if isinstance(value, dict) else {}
