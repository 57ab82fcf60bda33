"""The pages of switches: what is on, what could be stopped and how much runs there, and one switch with its effect."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from approvals.rules.switching import Line, goes_on, lines
from base import db
from catalog.models import Agent, KillSwitch, Stage, Tool
from catalog.queries import switch_targets
from catalog.queries.switch_rows import SwitchRow, on_now, on_over, row_of, with_people
from catalog.rules.switching import Mode, Scope
from jobs.queries import under_switch
from jobs.queries.under_switch import Aftermath, Place, Stopped
from jobs.rules.covered import Covered

LIFTED_SHOWN: Final = 20
TARGETS_SHOWN: Final = 100  # agents, and tools, on the page; those that are stopped or at work come first


type _Modes = dict[tuple[Scope, str], tuple[Mode, ...]]


@dataclass(frozen=True, slots=True)
class TargetRow:
    """Something that could be stopped, with its live calls; `on` are the modes of its own switches that are on."""

    scope: Scope
    target: str
    running: int
    waiting: int
    asking: int
    on: tuple[Mode, ...]


@dataclass(frozen=True, slots=True)
class SwitchesPage:
    """All switches and targets of a tenant."""

    on: tuple[SwitchRow, ...]
    lifted: tuple[SwitchRow, ...]
    tenant: TargetRow
    agents: tuple[TargetRow, ...]
    agents_found: int
    tools: tuple[TargetRow, ...]
    tools_found: int
    now: datetime

    @property
    def many(self) -> bool:
        """Whether not all of them are shown."""
        return len(self.agents) < self.agents_found or len(self.tools) < self.tools_found


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to stop a target, with what it will do. `on` is the switch of this kind that is on already."""

    mode: Mode
    will: tuple[Line, ...]
    on: SwitchRow | None


@dataclass(frozen=True, slots=True)
class Foretold:
    """A target that a person thinks of stopping."""

    scope: Scope
    target: str
    seen: Covered
    choices: tuple[Choice, ...]
    now: datetime


@dataclass(frozen=True, slots=True)
class SwitchPage:
    """One switch: what it found, what became of that, what of it still stops, and what lifting it does."""

    row: SwitchRow
    did: tuple[str, ...]
    seen: Covered
    stopping: tuple[Stopped, ...]
    after: Aftermath
    goes_on: str
    now: datetime


def switches_page(tenant: UUID, words: str = "") -> SwitchesPage:
    """The page of all switches, with the agents and tools whose names have these words in them."""
    with db.read(tenant) as now:
        on = on_now()
        lifted = with_people().filter(off_at__isnull=False).order_by("-off_at")[:LIFTED_SHOWN]
        places = under_switch.places()
        by_target = _modes(on)
        agents = Agent.objects.filter(plugin_version__stage=Stage.CURRENT, name__icontains=words)
        tools = Tool.objects.filter(plugin_version__stage=Stage.CURRENT, slug__icontains=words)
        by_agent, by_tool = _grouped(places, lambda place: place.agent), _grouped(places, lambda place: place.tool)
        agent_names, tool_names = set(agents.values_list("name", flat=True)), set(tools.values_list("slug", flat=True))
        return SwitchesPage(
            on=on,
            lifted=tuple(map(row_of, lifted)),
            tenant=_target(Scope.TENANT, "", places, by_target),
            agents=_targets(Scope.AGENT, agent_names, by_agent, by_target),
            agents_found=len(agent_names),
            tools=_targets(Scope.TOOL, tool_names, by_tool, by_target),
            tools_found=len(tool_names),
            now=now,
        )


def _grouped(places: Iterable[Place], by: Callable[[Place], str]) -> Mapping[str, list[Place]]:
    found: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        found[by(place)].append(place)
    return found


def _targets(
    scope: Scope,
    names: Iterable[str],
    places: Mapping[str, list[Place]],
    on: _Modes,
) -> tuple[TargetRow, ...]:
    """Those that are switched or at work, then the rest, each by name; as many as are shown, in the order of names."""
    first = sorted(names, key=lambda name: ((scope, name) not in on and not places.get(name), name))[:TARGETS_SHOWN]
    return tuple(_target(scope, name, places.get(name, []), on) for name in sorted(first))


def foretold(tenant: UUID, scope: Scope, target: str) -> Foretold | None:
    """What stopping or pausing a target would do now; None when there is no such target."""
    with db.read(tenant) as now:
        if not switch_targets.exists(scope, target):
            return None
        seen = under_switch.count(scope, target)
        on = {row.mode: row for row in on_over((scope, target)) if (row.scope, row.target) == (scope, target)}
        choices = tuple(Choice(mode, lines(scope, mode, seen), on.get(mode)) for mode in (Mode.PAUSE, Mode.KILL))
        return Foretold(scope, target, seen, choices, now)


def switch_page(tenant: UUID, switch_id: UUID) -> SwitchPage | None:
    """One switch; None when the tenant has none of this id."""
    with db.read(tenant) as now:
        found = with_people().filter(pk=switch_id).first()
        if found is None:
            return None
        row = row_of(found)
        seen = under_switch.count(row.scope, row.target)
        return SwitchPage(
            row=row,
            did=did(found),
            seen=seen,
            stopping=under_switch.still_stopping(found),
            after=under_switch.aftermath(found),
            goes_on=goes_on(row.scope, row.mode, seen),
            now=now,
        )


def did(switch: KillSwitch) -> tuple[str, ...]:
    """What a switch did by what it found when it was turned on; nothing for one of plain SQL, which counts nothing."""
    if not switch.found:
        return ()
    done = lines(Scope(switch.scope), Mode(switch.mode), Covered(**switch.found))
    return tuple(line.did for line in done if line.did)


def _modes(on: Iterable[SwitchRow]) -> _Modes:
    found: dict[tuple[Scope, str], list[Mode]] = {}
    for row in on:
        found.setdefault((row.scope, row.target), []).append(row.mode)
    return {target: tuple(modes) for target, modes in found.items()}


def _target(scope: Scope, target: str, places: list[Place], on: _Modes) -> TargetRow:
    total: Counter[str] = Counter()
    for place in places:
        total.update(running=place.running, waiting=place.waiting, asking=place.asking)
    modes = on.get((scope, target), ())
    return TargetRow(scope, target, total["running"], total["waiting"], total["asking"], modes)
