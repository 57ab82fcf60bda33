"""Cutting output into lines, whatever the chunks."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.sessions.lines import HEAD, Lines, Overlong, id_in_pieces
from catalog.sessions.log import Log

LIMIT = 3 * HEAD


@given(st.lists(st.integers(0, 5 * HEAD), max_size=8), st.integers(1, 2 * HEAD), st.booleans())
def test_lines_are_the_same_however_they_are_cut(sizes: list[int], chunk: int, carriage: bool) -> None:
    written = b"".join(
        bytes([65 + index]) * size + (b"\r\n" if carriage else b"\n") for index, size in enumerate(sizes)
    )
    lines = Lines(LIMIT)
    found = [line for start in range(0, len(written), chunk) for line in lines.feed(written[start : start + chunk])]
    assert lines.rest() == b""
    assert len(found) == len(sizes)
    for index, (size, line) in enumerate(zip(sizes, found, strict=True)):
        if isinstance(line, Overlong):
            assert size + carriage > LIMIT
            assert line.size == size + carriage
            assert line.head == bytes([65 + index]) * HEAD
            assert len(line.tail) == HEAD
        else:
            assert line == bytes([65 + index]) * size


def test_a_line_without_end_is_never_kept_whole() -> None:
    lines = Lines(LIMIT)
    for _ in range(1000):
        assert list(lines.feed(b"x" * HEAD)) == []
        assert len(lines.rest()) <= LIMIT + HEAD


def test_fifty_megabytes_in_one_line_take_well_under_a_second() -> None:
    lines, chunk = Lines(64 * 2**20), b"x" * 2**16
    began = time.process_time()
    for _ in range(800):
        list(lines.feed(chunk))
    (line,) = lines.feed(b"\n")
    assert len(line) == 800 * 2**16
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("head", "tail", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":12,"result":{', b"}}", 12),
        (b'{"id":"a-1","jsonrpc":"2.0",', b"}}", "a-1"),
        (b'{"jsonrpc":"2.0","result":{"id":3', b'"}},"id":12}', 12),
        (b'{"result":{', b'"}} , "jsonrpc": "2.0", "id": 12 }\r', 12),
        (b'{"result":{"id":3,', b'"}}', None),
        (b'{"method":"x","params":{"id":3,', b'"id":3}}', None),
        (b"Starting", b"done", None),
    ],
)
def test_the_id_of_a_line_too_long_to_read_is_found_at_its_ends(head: bytes, tail: bytes, id_: object) -> None:
    assert id_in_pieces(head, tail) == id_


def test_the_log_keeps_the_last_of_what_was_said() -> None:
    log = Log(kept=1000)
    for number in range(500):
        log.add("stderr", f"line {number}".encode())
    kept = log.tail()
    assert kept[-1] == "stderr: line 499"
    assert sum(len(line) for line in kept) <= 1000
    log.add("stderr", "y" * 10**6)
    assert log.tail() == ()
