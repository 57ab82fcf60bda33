"""The policy in force. Read under the gate (MACHINES 2)."""

import json
from functools import lru_cache

from base import prepared
from catalog.rules.policy import Policy

_NEWEST = "SELECT number, rules FROM catalog_policyversion ORDER BY number DESC LIMIT 1"
_READ_AT_ONCE = 256  # texts of policies that a process remembers what they say


def in_force() -> tuple[Policy, int]:
    """The newest policy of the tenant and its number; the studio's defaults are number 0."""
    newest = prepared.fetch_one(_NEWEST)
    return (_read(newest[1]), newest[0]) if newest else (Policy(), 0)


@lru_cache(_READ_AT_ONCE)
def _read(rules: str) -> Policy:
    """A policy by its very text, so that a changed one is never taken for the one before."""
    return Policy.read(json.loads(rules))
