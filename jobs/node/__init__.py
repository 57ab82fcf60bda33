"""The node as a library (MACHINES 4)."""

from jobs.node.node import Node
from jobs.node.values import CannotMeasure, NotOpened, Opened, ServerState, ServerStatus

__all__ = ["CannotMeasure", "Node", "NotOpened", "Opened", "ServerState", "ServerStatus"]
