"""Each process loads what it uses: a start waits for nothing else."""

import subprocess
import sys

import pytest

SETTINGS = {"OZ0_SECRET_KEY": "unused", "DATABASE_URL": "postgres://unused@127.0.0.1/unused"}


@pytest.mark.parametrize(
    ("process", "without"),
    [
        ("studio.asgi, studio.urls", {"mcp", "mcp_types", "pydantic_ai"}),
        ("studio.celery, jobs.tasks.host", {"daphne", "twisted"}),
    ],
    ids=["web", "node"],
)
def test_a_process_does_not_load_the_library_of_another(process: str, without: set[str]) -> None:
    """The control: what it is said to load, it does."""
    loads = f"import sys, {process}; print(*sys.modules)" if "asgi" in process else ""
    loads = loads or f"import sys, django; django.setup(); import {process}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", loads],
        env={**SETTINGS, "DJANGO_SETTINGS_MODULE": "studio.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert {"django", process.split(", ")[1]} <= loaded
    assert not without & loaded
