"""People who look on during a load: one reads pages, another keeps a page open that is told what changes."""

import base64
import http.client
import os
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import BinaryIO, Final

from base import ids
from jobs.consumers import NO_LAYER
from tests.faults.lab.load_work import Work

PAUSE: Final = 1.0  # seconds between two pages
STAYS: Final = 60.0  # seconds that a page is left open
PATIENCE: Final = 60.0
PAGES: Final = ("/", "/jobs/", "/approvals/", "/rail/", "/catalog/", "/catalog/tools/stdio/", "/jobs/?state=waiting")


class Onlookers:
    """`counted` has the pages by status, the open pages, and the nudges they got; `troubles` what must not be."""

    def __init__(self, port: int, cookie: str, work: Work) -> None:
        self.counted: Final[Counter[str]] = Counter()
        self.troubles: Final[list[str]] = []
        self._address = ("127.0.0.1", port)
        self._headers = {"Cookie": cookie, "Host": f"127.0.0.1:{port}"}
        self._work = work
        self._gone = threading.Event()
        self._dice = Random()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Have them look on for as long as the context lasts."""
        threads = [threading.Thread(target=self._until_gone, args=(one,)) for one in (self._read, self._stay)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._gone.set()
            for thread in threads:
                thread.join(2 * PATIENCE)

    def _until_gone(self, look: Callable[[], None]) -> None:
        while not self._gone.is_set():
            try:
                look()
            except OSError as error:
                self.troubles.append(f"{look.__name__}: {error!r}")
            self._gone.wait(PAUSE)

    def _read(self) -> None:
        recent = self._work.recent
        pages = [*PAGES, *(f"/jobs/{ids.show(ids.JOB, job)}/" for job in recent[-3:])]
        address = self._dice.choice(pages)
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE)
        try:
            connection.request("GET", address, headers=self._headers)
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        self.counted[f"pages answered {answer.status}"] += 1
        if answer.status != 200:
            self.troubles.append(f"{address} was answered {answer.status}")

    def _stay(self) -> None:
        with socket.create_connection(self._address, timeout=PATIENCE) as sock, sock.makefile("rb") as file:
            lines = ["GET /live/ HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
            lines += [f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}"]
            lines += [f"Origin: http://{self._headers['Host']}"]
            lines += [f"{name}: {value}" for name, value in self._headers.items()]
            sock.sendall("\r\n".join([*lines, "", ""]).encode())
            status = file.readline()
            if b" 403 " in status:  # the channel layer could not be reached in its half second; the page polls
                self.counted["open pages refused"] += 1
                return
            if b" 101 " not in status:
                self.troubles.append(f"a page's socket was answered {status!r}")
                return
            while file.readline().strip():
                pass
            self.counted["pages left open"] += 1
            topics = ", ".join(f'"job:{ids.show(ids.JOB, job)}"' for job in self._work.recent[-2:])
            sock.sendall(_frame(f'{{"join": ["jobs", "approvals"{", " if topics else ""}{topics}]}}'.encode()))
            until = time.monotonic() + STAYS
            while time.monotonic() < until and not self._gone.is_set():
                closed = self._told(sock, file)
                if closed is not None:
                    self.counted[f"open pages closed with {closed}"] += 1
                    if closed != NO_LAYER:  # what a busy machine makes of four seconds; the page connects again
                        self.troubles.append(f"a page's socket was closed with {closed}")
                    return
            sock.sendall(_frame(b"\x03\xe8", opcode=8))

    def _told(self, sock: socket.socket, file: BinaryIO) -> int | None:
        """Take one message, and answer a ping as browsers do; the code when it is that the socket is closed."""
        head = file.read(2)
        if len(head) < 2:
            return 0
        length = head[1] & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", file.read(2))
        payload = file.read(length)
        if head[0] & 0x0F == 8:
            return int.from_bytes(payload[:2])
        if head[0] & 0x0F == 9:  # unanswered for 30 s, Daphne resets the connection
            sock.sendall(_frame(payload, opcode=10))
            return None
        self.counted["nudges"] += 1
        return None


def _frame(payload: bytes, *, opcode: int = 1) -> bytes:
    """A client's frame: final, and masked with zeros."""
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
    return bytes([0x80 | opcode]) + length + bytes(4) + payload
