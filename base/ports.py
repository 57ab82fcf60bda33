"""Ports of this machine."""

import socket


def listens(port: int) -> bool:
    """Whether something on this machine takes connections at the port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0
