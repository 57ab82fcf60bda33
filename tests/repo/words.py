"""What never stands in the project's files: one machine's paths, a registry's address, a test that is passed over."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.repo.tree import Finding, dotted, files, imported_names, sources

# Put together from parts, so that this file does not trip over itself.
HOSTS: Final = tuple(
    ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"))
)
HOMES: Final = ("root", "work", "home", "Users")
FORBIDDEN: Final = (
    (
        re.compile("|".join(re.escape(host) for host in HOSTS)),
        "names a package registry: the client's own settings say which",
    ),
    (
        re.compile(rf"(?<![\w.}}$~*-])/(?:{'|'.join(HOMES)})/"),
        "is a path of one machine: make it relative, or read it from the environment",
    ),
)
PASSED_OVER: Final = frozenset(
    {
        "pytest.mark.skip",
        "pytest.mark.skipif",
        "pytest.mark.xfail",
        "pytest.skip",
        "pytest.xfail",
        "pytest.importorskip",
        "unittest.skip",
        "unittest.skipIf",
        "unittest.SkipTest",
    }
)


def forbidden_words(tree: Path) -> list[Finding]:
    """Lines of text files that name a registry or a machine's own path."""
    return [found for path in files(tree) for found in _in_file(path, path.relative_to(tree).as_posix())]


def _in_file(path: Path, place: str) -> Iterator[Finding]:
    content = path.read_bytes()
    if b"\0" in content:
        return
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        for pattern, why in FORBIDDEN:
            if match := pattern.search(line):
                yield Finding(place, number, f"`{match.group()}` {why}")


def passed_over(tree: Path) -> list[Finding]:
    """Tests that would not run: a test that cannot pass here is mended or taken out."""
    return [
        source.finding(node, f"`{name}`: a test that is passed over proves nothing; mend it or take it out")
        for source in sources(tree, "tests")
        for names in [imported_names(source.syntax)]
        for node in ast.walk(source.syntax)
        if isinstance(node, ast.Name | ast.Attribute) and (name := dotted(node, names)) in PASSED_OVER
    ]
