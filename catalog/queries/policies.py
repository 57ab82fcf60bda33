"""The policy in force. Read under the gate (MACHINES 2)."""

import json
from functools import lru_cache
from typing import Final
from uuid import UUID

from base import db, prepared
from catalog.rules.policy import Policy

NEWEST: Final = "SELECT number, rules FROM catalog_policyversion ORDER BY number DESC LIMIT 1"
_REMEMBERED: Final = 256  # texts of policies that a process remembers what they say


def in_force() -> tuple[Policy, int]:
    """The newest policy of the tenant and its number; the studio's defaults are number 0."""
    newest = prepared.fetch_one(NEWEST)
    return (read(newest[1]), newest[0]) if newest else (Policy(), 0)


@lru_cache(_REMEMBERED)
def read(rules: str | None) -> Policy:
    """A policy by its very text, so that a changed one is never taken for the one before; None is the studio's own."""
    return Policy() if rules is None else Policy.read(json.loads(rules))


def number_in_force(tenant: UUID) -> int:
    """The number of the newest version; 0 is the studio's own."""
    with db.read(tenant):
        return in_force()[1]
