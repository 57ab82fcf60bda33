"""Whether the program of an imported server can be run from the studio, and its command as it is kept (CASES I01)."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from catalog.rules.mcp_servers import Server
from catalog.rules.problems import Problem

_FILE: Final = re.compile(r"[^\s:=]+\.(?:py|pyz|js|mjs|cjs|ts|jar|rb|php|sh|exe)\Z")


def settled(server: Server, *, file: Path, environment: Mapping[str, str]) -> Server:
    """The server with its program's whole path, or with the problems that keep it from being run.

    A tool's program starts in a folder of the studio's, so a path in its command has to be whole. `file` is the list
    that names the server; what is relative is looked for in its `cwd`, else beside that list.
    """
    if not server.argv or server.problems:
        return server
    beside = Path(server.cwd) if server.cwd else file.absolute().parent
    program, problems = server.argv[0], list[Problem]()

    def note(key: str, message: str, fix: str) -> None:
        problems.append(Problem(file.name, server.line, f"{server.name}.{key}", message, fix))

    if program.startswith("~/"):
        program = str(Path(environment.get("HOME", "~")) / program[2:])
    if "/" in program and not program.startswith("/"):
        there = (beside / program).resolve()
        note("command", f"{program} is a relative path", f"write {there if there.exists() else 'the whole path'}")
    else:
        path = server.env.get("PATH") or environment.get("PATH") or os.defpath
        found = shutil.which(program, path=path)
        if found is None and program.startswith("/"):
            note("command", f"there is no program {program}", "install it there, or write where it is")
        elif found is None:
            fix = "install it, write its whole path, or give the server a PATH under `env`"
            note("command", f"there is no program {program} on the path {path}", fix)
        else:
            program = found
    for at, word in enumerate(server.argv[1:]):
        if (place := _relative(word, beside)) is not None:
            known = place if place.exists() else "the whole path"
            note(f"args[{at}]", f"{word} is a relative path, and the program starts elsewhere", f"write {known}")
    notes = server.notes
    if server.cwd and not problems:
        notes = (*notes, "cwd is not taken over: the program starts in a folder of the studio's")
    return replace(server, argv=(program, *server.argv[1:]), notes=notes, problems=tuple(problems))


def _relative(word: str, beside: Path) -> Path | None:
    """The file or folder that an argument names by a relative path, or None when it names none."""
    if word.startswith(("-", "/", "@")) or "://" in word:
        return None
    there = (beside / word).resolve()
    marked = word in (".", "..") or word.startswith(("./", "../"))
    return there if marked or (_FILE.match(word) and there.exists()) or _is_script(word) else None


def _is_script(word: str) -> bool:
    return "/" in word and _FILE.match(word) is not None
