"""Daphne as the studio runs it."""

import logging
import sys
from collections.abc import Mapping
from typing import Any

from daphne import cli
from django.conf import settings

log = logging.getLogger(__name__)


class Interface(cli.CommandLineInterface):  # type: ignore[misc]  # Daphne has no types
    """Daphne's command line, which reads modules from where every module of the studio comes from."""

    def run(self, args: list[str]) -> None:
        """Serve until it is ended."""
        if settings.OZ0_LOG == "json":
            cli.AccessLogGenerator = JsonRequests
        super().run(args)

    def load_asgi_app(self, asgi_app_path: str) -> Any:
        """The application, once the working folder is off the path again: a `catalog.py` there is not ours."""
        sys.path.remove(".")
        return super().load_asgi_app(asgi_app_path)


class JsonRequests:
    """Each request that was answered as an event of the log, in place of a line beside it."""

    def __init__(self, stream: object) -> None:
        """Daphne's own would write to `stream`."""

    def __call__(self, protocol: str, action: str, details: Mapping[str, Any]) -> None:
        """What Daphne tells of a connection."""
        if protocol == "http" and action == "complete":
            log.info("%s %s %s %s", details["method"], details["path"], details["status"], details["client"])
        elif protocol == "websocket":
            log.info("websocket %s %s %s", action, details["path"], details["client"])
