"""The spend journal: what was admitted, what is known of it, and what was told afterwards (RULES S)."""

from budgets.models.events import Run, SpendEvent, TagValue
from budgets.models.journal import Item, Operation, Receipt, Reservation
from budgets.models.projects import Key, Limit, Project, Tally

__all__ = [
    "Item",
    "Key",
    "Limit",
    "Operation",
    "Project",
    "Receipt",
    "Reservation",
    "Run",
    "SpendEvent",
    "TagValue",
    "Tally",
]
