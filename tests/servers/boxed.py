"""A server for sandboxes: its functions look around, hang, and eat memory.

With STUBBORN in its environment it ignores SIGTERM and the end of its input, and has a child in a session of its own.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("boxed", log_level="ERROR")
READS = ToolAnnotations(read_only_hint=True)


def _refused(act) -> bool:
    try:
        act()
    except OSError:
        return True
    return False


@server.tool(annotations=READS)
def look(secret: str, host: str, port: int) -> str:
    """What can be seen, reached and written from here."""
    return json.dumps(
        {
            "secret_is_there": os.path.exists(secret),
            "reached": not _refused(lambda: socket.create_connection((host, port), 1).close()),
            "interfaces": [name for _, name in socket.if_nameindex()],
            "read_only": [place for place in ("/", "/usr", os.getcwd()) if os.statvfs(place).f_flag & os.ST_RDONLY],
            "environment": sorted(os.environ),
            "processes": sum(name.isdigit() for name in os.listdir("/proc")),
            "root": _refused(lambda: os.setuid(0)) is False,
        }
    )


@server.tool()
def who() -> str:
    """Which life of the server answers, by what an earlier call left in its scratch folder."""
    before = os.path.exists("/scratch/been")
    open("/scratch/been", "w").close()
    return "again" if before else "first"


@server.tool()
def hangs() -> str:
    """Cannot be interrupted."""
    time.sleep(600)
    return "never"


@server.tool(annotations=READS)
async def eats(mebibytes: int) -> str:
    """Takes memory, as a program does that does not survive being refused it."""
    try:
        held = b"\0" * (mebibytes * 2**20)
    except MemoryError:
        os.abort()
    return f"held {len(held)}"


if __name__ == "__main__":
    if os.environ.get("STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sleeper = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", sleeper, "boxed-grandchild"], start_new_session=True)
    server.run()
    if os.environ.get("STUBBORN"):
        time.sleep(600)
