"""Daphne as the studio runs it."""

import sys
from typing import Any

from daphne.cli import CommandLineInterface


class Interface(CommandLineInterface):  # type: ignore[misc]  # Daphne has no types
    """Daphne's command line, which reads modules from where every module of the studio comes from."""

    def load_asgi_app(self, asgi_app_path: str) -> Any:
        """The application, once the working folder is off the path again: a `catalog.py` there is not ours."""
        sys.path.remove(".")
        return super().load_asgi_app(asgi_app_path)
