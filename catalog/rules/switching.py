"""Switches over work: what one covers, and how hard it stops (RULES L7, L11)."""

from enum import StrEnum


class Scope(StrEnum):
    """What a switch covers."""

    TENANT = "tenant"
    AGENT = "agent"
    TOOL = "tool"
    FUNCTION = "function"


class Mode(StrEnum):
    """How hard it stops. In this order: where both are on, the harder one counts."""

    KILL = "kill"  # what runs is stopped, what waits ends, what is new is refused
    PAUSE = "pause"  # nothing starts; what runs ends by itself, and what waits goes on afterwards
