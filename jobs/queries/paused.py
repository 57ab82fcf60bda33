"""Conditions that leave out what is paused (RULES L11), in statements about a job `j`, or a call `c` of it."""

from typing import Final

from catalog.rules.switching import Mode, Scope

_PAUSE: Final = f"SELECT 1 FROM catalog_killswitch s WHERE s.off_at IS NULL AND s.mode = '{Mode.PAUSE}'"  # noqa: S608 - only names of ours
_OF_JOB: Final = f"s.scope = '{Scope.TENANT}' OR s.scope = '{Scope.AGENT}' AND s.target = j.agent_name"
NOT_JOB: Final = f"NOT EXISTS ({_PAUSE} AND s.tenant_id = j.tenant_id AND ({_OF_JOB}))"
NOT_CALL: Final = f"""NOT EXISTS ({_PAUSE} AND s.tenant_id = c.tenant_id AND ({_OF_JOB}
    OR s.scope = '{Scope.TOOL}' AND s.target = c.tool_slug
    OR s.scope = '{Scope.FUNCTION}' AND s.target = c.tool_slug || '.' || c.function_name))"""
