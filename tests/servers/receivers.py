"""What takes notices on the other side: a webhook's receiver, and a mail server that keeps what it is sent."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """A webhook's receiver. It answers with `statuses` in turn, the last one for ever, and keeps every request."""

    place: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # METHOD path of whatever came
    hangs: threading.Event | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{self.place}/hook"


@contextmanager
def a_receiver() -> Iterator[Receiver]:
    """A receiver on a port of its own."""
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            kept.asked.append(f"POST {self.path}")
            kept.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            if kept.hangs is not None:
                kept.hangs.wait(30)
            status = kept.statuses.pop(0) if len(kept.statuses) > 1 else kept.statuses[0]
            self.send_response(status)
            for name, value in kept.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"heard")

        def do_GET(self) -> None:
            kept.asked.append(f"GET {self.path}")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept.place = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        if kept.hangs is not None:
            kept.hangs.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


@dataclass
class Mailbox:
    """A mail server that takes everything but what is to `refused`."""

    port: int = 0
    refused: set[str] = field(default_factory=set)
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)


@contextmanager
def a_mailbox() -> Iterator[Mailbox]:
    """A mail server on a port of its own, talking SMTP as far as it is needed."""
    kept = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 here")
            to: list[str] = []
            while line := self.rfile.readline().decode().strip():
                word = line.split(" ")[0].upper()
                if word == "RCPT":
                    who = line.partition("<")[2].partition(">")[0]
                    if who in kept.refused:
                        self.say("550 nobody here of that name")
                        continue
                    to.append(who)
                elif word == "DATA":
                    self.say("354 go on")
                    whole = b""
                    while (part := self.rfile.readline()) != b".\r\n":
                        whole += part.removeprefix(b".") if part.startswith(b"..") else part
                    found = message_from_bytes(whole, policy=policy.default)
                    assert isinstance(found, EmailMessage)
                    kept.mails.append((to, found))
                elif word == "QUIT":
                    self.say("221 bye")
                    return
                self.say("250 ok")

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        kept.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join(5)
