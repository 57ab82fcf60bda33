"""The lab's functions over Streamable HTTP in both generations, each behind a proxy that spoils its wire as it is told.

    python -m tests.faults.lab.far SOCKET

It prints the ports of both proxies as JSON. A line `refuse PORT SECONDS` on stdin has nobody listen there for a while.
"""

import json
import os
import socket
import sys
import threading
from pathlib import Path

import uvicorn

from examples.archive.archive_server import older
from tests.faults.lab.lab_server import build
from tests.faults.lab.wire import WireProxy


def serve(*, legacy: bool) -> int:
    """Start one server on a thread; its port."""
    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    app = build().streamable_http_app()
    config = uvicorn.Config(older(app) if legacy else app, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True).start()
    return int(door.getsockname()[1])


def main() -> None:
    """Serve until stdin ends."""
    os.chdir(Path(sys.argv[1]).parent)  # its socket is found there, as by the plugin's own servers
    with WireProxy(serve(legacy=False)) as modern, WireProxy(serve(legacy=True)) as legacy:
        print(json.dumps({"modern": modern.port, "legacy": legacy.port}), flush=True)
        by_port = {proxy.port: proxy for proxy in (modern, legacy)}
        for line in sys.stdin:
            _, port, seconds = line.split()
            by_port[int(port)].refuse_for(float(seconds))


if __name__ == "__main__":
    main()
    os._exit(0)  # its servers' threads have no end of their own
