"""Drills: faults put to a plugin's own servers, through the node, and what comes of them (RULES D2, decision 9)."""

from jobs.drills.drill import drill

__all__ = ["drill"]
