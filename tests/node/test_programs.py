"""Harness programs as a node runs them: what is kept of their output (RULES A14)."""

import asyncio
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from base.masking import SHOWN
from catalog.rules.sandbox import Sandbox
from jobs.node.programs import Programs
from jobs.rules.sessions import MOST_OUTPUT, SessionEnd, SessionOrder

SECRET = "token-of-ümläuts-and-thirty-characters"


async def ran(code: str) -> SessionEnd:
    """How a Python program ends that has the secret in its environment."""
    end: asyncio.Future[SessionEnd] = asyncio.get_running_loop().create_future()
    programs = Programs(lambda _order, how: end.set_result(how))
    order = SessionOrder(
        tenant=uuid4(),
        job_id=uuid4(),
        session_id=uuid4(),
        incarnation=1,
        argv=(sys.executable, "-c", code),
        cwd=str(Path(__file__).parent),
        sandbox=Sandbox(),
        servers=("http://127.0.0.1:9",),
        allowed=("127.0.0.1:9",),
        env={"SECRET": SECRET, "PYTHONIOENCODING": "utf-8"},
        given=b"",
        secrets=(SECRET,),
    )
    programs.begin(order)
    try:
        return await asyncio.wait_for(end, 60)
    finally:
        await programs.close()


@pytest.mark.parametrize("left", [3, 4, 20, len(SECRET.encode()) - 3])
def test_output_that_is_kept_from_inside_a_secret_on_shows_nothing_of_it(left: int) -> None:
    """`left` bytes of the secret are within what is kept of a longer output."""
    code = f"import os; print('Q' * 50_000 + os.environ['SECRET'] + '.' * {MOST_OUTPUT - left}, end='')"
    end = asyncio.run(ran(code))
    assert end.code == 0
    assert set(end.output.removeprefix(SHOWN)) <= {".", *SECRET[-3:]}
    assert not any(SECRET[at : at + 4] in end.output for at in range(len(SECRET) - 3))
