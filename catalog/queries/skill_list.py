"""The skills there are: what agents may read."""

from dataclasses import dataclass
from uuid import UUID

from base import db
from catalog.models import Skill, Stage


@dataclass(frozen=True, slots=True)
class SkillRow:
    """One skill of a current plugin version."""

    name: str
    plugin: str
    description: str


def skills_page(tenant: UUID) -> tuple[SkillRow, ...]:
    """The skills of current plugin versions, by plugin and name."""
    with db.read(tenant):
        rows = Skill.objects.filter(plugin_version__stage=Stage.CURRENT).select_related("plugin_version__plugin")
        found = rows.order_by("plugin_version__plugin__name", "name")[:1_000]
        return tuple(SkillRow(row.name, row.plugin_version.plugin.name, row.description) for row in found)
