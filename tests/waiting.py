"""Waiting for something that other threads or processes bring about: bounded, and saying what did not happen."""

import threading
import time
from collections.abc import Callable


def until(happened: Callable[[], bool], otherwise: str, seconds: float = 20) -> None:
    """Return once `happened()` is true; fail with `otherwise` when it is not within `seconds`."""
    tick = threading.Event()
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"{otherwise} (waited {seconds:g} s)"
        tick.wait(0.05)
