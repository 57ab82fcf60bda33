"""What the pages in Markdown promise and the tree must keep: links, commands, settings, numbers of decisions."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.repo.containers import filled_in
from tests.repo.tree import PRODUCT, Finding, files, sources

LINK: Final = re.compile(r"\[[^\]]*\]\((?P<to>[^)\s]+)\)|^\[[^\]]+\]: (?P<defined>\S+)$", re.MULTILINE)
OUTSIDE: Final = re.compile(r"https?://(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?(?:/[\w./~%?&=#@+:-]*)?\Z")
HEADING: Final = re.compile(r"^#{1,6} (?P<text>.+?)\s*$", re.MULTILINE)
FENCED: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"\bmake (?P<target>[a-z]+(?:-[a-z]+)*)\b(?! [a-z]+ )")
TARGET: Final = re.compile(r"^(?P<name>[a-z-]+):.*## ", re.MULTILINE)
DECISION: Final = re.compile(r"^(?P<number>\d{4})-[a-z0-9-]+\.md$")
SETTING: Final = re.compile(r"(?:OZ0_[A-Z0-9_]+|DATABASE_(?:OWNER_)?URL|REDIS_URL|BROKER_URL|NO_COLOR)\Z")
CODE: Final = re.compile(r"`(?P<code>[^`]+)`|^```.*?^```", re.MULTILINE | re.DOTALL)
PLACE: Final = re.compile(r"(?:[a-z_]+/)+[a-z_]+\.(?:py|md|css|js|html)")


def broken_links(tree: Path) -> list[Finding]:
    """Links, pictures and anchors that lead nowhere, addresses without form, and files in `code` that are not there.

    Whether an address of somebody else's answers is not looked at: the tests have no network.
    """
    found = []
    for path, place, text in _pages(tree):
        for match in LINK.finditer(CODE.sub(lambda code: " " * len(code.group()), text)):
            if why := _leads_nowhere(path, match["to"] or match["defined"]):
                found.append(Finding(place, _line(text, match.start()), why))
        found += [
            Finding(place, _line(text, match.start()), f"names {match['code']}, which is not there")
            for match in CODE.finditer(text)
            if match["code"] and PLACE.fullmatch(match["code"]) and not (tree / match["code"]).exists()
        ]
    return found


def _leads_nowhere(page: Path, link: str) -> str:
    """Why a link of this page leads nowhere, empty when it does lead somewhere."""
    if "://" in link:
        return "" if OUTSIDE.match(link) else f"links to {link}, which is no address of a page"
    to, _, anchor = link.partition("#")
    target = page.parent / to if to else page
    if not target.exists():
        return f"links to {to}, which is not there"
    if anchor and anchor not in anchors(target.read_text()):
        return f"links to {link}, and there is no such heading"
    return ""


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings get: small letters, hyphens for spaces, a number when one comes again."""
    found: dict[str, int] = {}
    for match in HEADING.finditer(FENCED.sub("", text)):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match["text"]).lower()).replace(" ", "-")
        found[name] = found.get(name, 0) + 1
    return {name if not again else f"{name}-{again}" for name, times in found.items() for again in range(times)}


def unknown_commands(tree: Path) -> list[Finding]:
    """`make` targets that a page names and the Makefile lacks, and public targets that no page names."""
    targets = {match["name"] for match in TARGET.finditer((tree / "Makefile").read_text())}
    found, named = [], set()
    for _, place, text in _pages(tree):
        for code in CODE.finditer(text):
            for match in COMMAND.finditer(code.group()):
                named.add(match["target"])
                if match["target"] not in targets:
                    found.append(
                        Finding(place, _line(text, code.start()), f"make {match['target']} is not in the Makefile")
                    )
    return found + [
        Finding("Makefile", 1, f"no page says what make {target} is for") for target in targets - named - {"help"}
    ]


def unwritten_settings(tree: Path) -> list[Finding]:
    """Variables that the product or compose.yaml names and docs/operating.md does not list, and the other way round."""
    named = {
        node.value: source.place
        for source in sources(tree, *PRODUCT)
        for node in ast.walk(source.syntax)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SETTING.match(node.value)
    }
    named |= dict.fromkeys(filled_in(tree), "compose.yaml")
    listed = listed_settings(tree)
    return [
        *(
            Finding("docs/operating.md", 1, f"{name} is read by {place} and not listed")
            for name, place in named.items()
            if name not in listed
        ),
        *(Finding("docs/operating.md", 1, f"{name} is listed and nothing reads it") for name in listed - set(named)),
    ]


def listed_settings(tree: Path) -> set[str]:
    """The variables that have a row of their own in docs/operating.md."""
    return set(re.findall(r"^\| `([A-Z][A-Z0-9_]+)`", (tree / "docs/operating.md").read_text(), re.MULTILINE))


def misnumbered_decisions(tree: Path) -> list[Finding]:
    """Decisions whose numbers leave a gap or stand twice, or that the index does not name."""
    folder = tree / "docs/decisions"
    index = (folder / "README.md").read_text()
    found = []
    names = sorted(path.name for path in folder.iterdir() if path.name != "README.md")
    for expected, name in enumerate(names, 1):
        match = DECISION.match(name)
        if not match or int(match["number"]) != expected:
            found.append(
                Finding(f"docs/decisions/{name}", 1, f"should be number {expected:04}: numbers run without a gap")
            )
        elif not (folder / name).read_text().startswith(f"# {expected}. "):
            found.append(Finding(f"docs/decisions/{name}", 1, f"its title should begin with `# {expected}. `"))
        if f"({name})" not in index:
            found.append(Finding("docs/decisions/README.md", 1, f"does not list {name}"))
    return found


def _pages(tree: Path) -> Iterator[tuple[Path, str, str]]:
    for path in files(tree):
        if path.suffix == ".md":
            yield path, path.relative_to(tree).as_posix(), path.read_text()


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
