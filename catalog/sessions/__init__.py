"""The one door to the MCP client SDK: sessions with tools' servers, whose values are our own."""

from catalog.sessions.bearing import bear
from catalog.sessions.calls import Broke, Call, CallEnd
from catalog.sessions.clients import Clients
from catalog.sessions.log import Log
from catalog.sessions.once import list_once, listed
from catalog.sessions.process import ServerProcess, StartFailed
from catalog.sessions.session import NotUp, Session, open_session
from catalog.sessions.trial import NotListed, Trial

__all__ = [
    "Broke",
    "Call",
    "CallEnd",
    "Clients",
    "Log",
    "NotListed",
    "NotUp",
    "ServerProcess",
    "Session",
    "StartFailed",
    "Trial",
    "bear",
    "list_once",
    "listed",
    "open_session",
]
