"""The studio's addresses over real HTTP, answered in the test's own process, on the test's own database."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.db import connection
from django.test import Client


class _Studio(BaseHTTPRequestHandler):
    """Hands each request to the pages as they are."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        given = {name: value for name, value in self.headers.items() if name not in ("Content-Length", "Host")}
        kind = given.pop("Content-Type", "application/octet-stream")
        try:
            found = Client().generic(self.command, self.path, body, content_type=kind, headers=given)
        finally:
            connection.close()
        self.send_response(found.status_code)
        for name, value in found.headers.items():
            if name != "Content-Length":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(found.content)))
        self.end_headers()
        self.wfile.write(found.content)

    do_GET = do_POST = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    """A studio's address, while the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Studio)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
