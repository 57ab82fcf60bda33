"""The skills' pages: what there is to read, what reading it costs, and which agents see it and why (RULES M2–M4)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q, Value
from django.db.models.functions import Concat

from base import db, tokens
from catalog.models import PluginVersion, Skill, Stage
from catalog.queries.costs import Granted, agents_now
from catalog.queries.kept_agents import UnreadableAgent, kept_agents
from catalog.queries.paging import A_PAGE, Paged, page_within
from catalog.queries.skills import library_now
from catalog.rules.lint_functions import MANUAL_LONG
from catalog.rules.skills import full_name

VERSIONS_SHOWN: Final = 50
_REMEMBERED: Final = 4_096  # skills whose figures a process keeps at least
_counted: Final[dict[UUID, int]] = {}  # right for as long as it is kept: the text of a version never changes


@dataclass(frozen=True, slots=True)
class Reader:
    """One agent that sees a skill, and why: its file names it, or a function of these tools is granted to it."""

    agent: str
    plugin: str
    granted: bool
    manual_of: tuple[str, ...]
    taints: bool


@dataclass(frozen=True, slots=True)
class Manual:
    """A tool's manual that a skill is a part of: about what all of it comes to when it is read."""

    tool: str
    skills: tuple[str, ...]
    tokens: int

    @property
    def long(self) -> bool:
        """Whether lint warns about it (RULES M4)."""
        return self.tokens > MANUAL_LONG


@dataclass(frozen=True, slots=True)
class SkillRow:
    """One skill of a current plugin version. `tokens` is about what its description and text come to."""

    name: str
    plugin: str
    version: str
    description: str
    tokens: int
    manuals: tuple[str, ...]
    readers: tuple[Reader, ...]


@dataclass(frozen=True, slots=True)
class SkillsPage(Paged[SkillRow]):
    """One page of the skills that fit a filter, of how many there are. `plugins` are those that bring any."""

    unreadable: tuple[UnreadableAgent, ...]
    every: int
    plugins: tuple[str, ...]

    @property
    def most(self) -> int:
        """The biggest figure, for the bars."""
        return max((row.tokens for row in self.rows), default=1)


@dataclass(frozen=True, slots=True)
class SkillVersion:
    """One version of the plugin that has the skill. `changed`: its text is another than in the version before it."""

    id: UUID
    version: str
    digest: str
    stage: str
    added_at: datetime
    changed: bool
    first: bool
    shown: bool


@dataclass(frozen=True, slots=True)
class SkillPage:
    """One skill in one version of its plugin. `current` is false for an older version, which no new job reads."""

    name: str
    plugin: str
    version: str
    current: bool
    description: str
    text: str
    tokens: int
    manuals: tuple[Manual, ...]
    readers: tuple[Reader, ...]
    unreadable: tuple[UnreadableAgent, ...]
    versions: tuple[SkillVersion, ...]
    now: datetime


def skills_page(tenant: UUID, *, words: str = "", plugin: str = "", page: int = 1) -> SkillsPage:
    """The skills of current plugin versions, by plugin and name: those of one plugin, and that have these words.

    Past the end it is the last page.
    """
    with db.read(tenant):
        every = Skill.objects.filter(plugin_version__stage=Stage.CURRENT)
        rows = every.annotate(full=Concat("plugin_version__plugin__name", Value("/"), "name"))
        for word in words.split():
            rows = rows.filter(Q(full__icontains=word) | Q(description__icontains=word))
        if plugin:
            rows = rows.filter(plugin_version__plugin__name=plugin)
        found = rows.count()
        page = page_within(page, found)
        ordered = (
            rows.select_related("plugin_version__plugin").defer("text").order_by("plugin_version__plugin__name", "name")
        )
        wanted = list(ordered[(page - 1) * A_PAGE : page * A_PAGE])
        kept = kept_agents()
        readers, manuals = _readers(agents_now(kept=kept)), _manuals()
        figures = _tokens_of(row.pk for row in wanted)
        return SkillsPage(
            rows=tuple(
                SkillRow(
                    name=row.name,
                    plugin=row.plugin_version.plugin.name,
                    version=row.plugin_version.version,
                    description=row.description,
                    tokens=figures[row.pk],
                    manuals=tuple(manuals.get(_full(row), ())),
                    readers=tuple(readers.get(_full(row), ())),
                )
                for row in wanted
            ),
            unreadable=kept.unreadable,
            found=found,
            page=page,
            every=every.count(),
            plugins=tuple(
                every.order_by("plugin_version__plugin__name")
                .values_list("plugin_version__plugin__name", flat=True)
                .distinct()
            ),
        )


def skill_page(tenant: UUID, plugin: str, name: str, *, version: UUID | None = None) -> SkillPage | None:
    """One skill, in the current version of its plugin or in another one of it; None when there is none such."""
    with db.read(tenant) as now:
        rows = Skill.objects.filter(plugin_version__plugin__name=plugin, name=name)
        every = list(
            rows.select_related("plugin_version__plugin").order_by("-plugin_version__added_at")[:VERSIONS_SHOWN]
        )
        shown = next((row for row in every if _is_shown(row.plugin_version, version)), None)
        if shown is None:
            return None
        library, full = library_now(), full_name(plugin, name)
        current, kept = shown.plugin_version.stage == Stage.CURRENT, kept_agents()
        manuals = [(tool, skills) for tool, skills in sorted(library.manuals.items()) if current and full in skills]
        parts = {skill: library.ids[skill] for _, skills in manuals for skill in skills if skill in library.ids}
        figures = _tokens_of([shown.pk, *parts.values()])
        return SkillPage(
            name=name,
            plugin=plugin,
            version=shown.plugin_version.version,
            current=current,
            description=shown.description,
            text=shown.text,
            tokens=figures[shown.pk],
            manuals=tuple(
                Manual(tool, skills, sum(figures[parts[skill]] for skill in skills if skill in parts))
                for tool, skills in manuals
            ),
            readers=tuple(_readers(agents_now(kept=kept)).get(full, ())) if current else (),
            unreadable=kept.unreadable if current else (),
            versions=tuple(_versions(every, shown)),
            now=now,
        )


def _is_shown(row: PluginVersion, version: UUID | None) -> bool:
    return row.stage == Stage.CURRENT if version is None else row.pk == version


def _versions(every: Sequence[Skill], shown: Skill) -> list[SkillVersion]:
    before = [*every[1:], None]
    return [
        SkillVersion(
            id=row.plugin_version_id,
            version=row.plugin_version.version,
            digest=row.plugin_version.digest,
            stage=row.plugin_version.stage,
            added_at=row.plugin_version.added_at,
            changed=older is not None and (row.text, row.description) != (older.text, older.description),
            first=older is None and len(every) < VERSIONS_SHOWN,
            shown=row.pk == shown.pk,
        )
        for row, older in zip(every, before, strict=True)
    ]


def _readers(agents: Collection[Granted]) -> Mapping[str, list[Reader]]:
    """Who sees each skill, by its full name."""
    found: dict[str, list[Reader]] = defaultdict(list)
    for one in agents:
        for line in one.index:
            found[line.name].append(
                Reader(one.spec.name, one.plugin, line.granted, line.manual_of, line.taints(one.plugin))
            )
    return found


def _manuals() -> Mapping[str, list[str]]:
    """The tools whose manual each skill is a part of, by its full name."""
    found: dict[str, list[str]] = defaultdict(list)
    for tool, skills in sorted(library_now().manuals.items()):
        for skill in skills:
            found[skill].append(tool)
    return found


def _full(row: Skill) -> str:
    return full_name(row.plugin_version.plugin.name, row.name)


def _tokens_of(skills: Iterable[UUID]) -> Mapping[UUID, int]:
    """About what each of these skills comes to, counted as lint counts a manual. One query, or none."""
    wanted = set(skills)
    found = {pk: count for pk in wanted if (count := _counted.get(pk)) is not None}
    if len(found) < len(wanted):
        rows = list(Skill.objects.filter(pk__in=wanted - found.keys()).values_list("pk", "description", "text"))
        counts = tokens.counts([f"{description}\n{text}" for _, description, text in rows])
        counted = dict(zip((pk for pk, _, _ in rows), counts, strict=True))
        if len(_counted) > _REMEMBERED:
            _counted.clear()
        _counted.update(counted)
        found |= counted
    return found
