"""Untrusted text has one way onto a page: `safe_text` and its kin. The ways round them are found here (RULES A13)."""

import ast
import re
from pathlib import Path
from typing import Final

from tests.repo.tree import PRODUCT, Finding, files, sources

MARKS_SAFE: Final = ("base/text.py", "base/tags.py")
ROUND: Final = re.compile(
    r"\|\s*(?:safe|safeseq|force_escape|linebreaks|linebreaksbr|urlize|urlizetrunc|json_script)\b"
    r"|\{%\s*(?:autoescape|verbatim|filter|debug)\b"
)
SCRIPT: Final = re.compile(
    r"<script(?![^>]*\bsrc=)|\son(?:click|load|error|focus|blur|submit|change|input|toggle|begin|key|mouse|pointer)\w*="
    r"|javascript:|<style|\sstyle=|srcdoc=",
    re.IGNORECASE,
)
SAID_UNQUOTED: Final = re.compile(r"<[^>]*\s[a-z-]+=\{\{")


def ways_round(tree: Path) -> list[Finding]:
    """Templates that let text through as markup or hold script, and code that calls text of its own making safe."""
    found = []
    for path in files(tree):
        place = path.relative_to(tree).as_posix()
        if path.suffix == ".html" and place.startswith("templates/"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for pattern, why in (
                    (ROUND, "lets text through as it is: print it with safe_text and its kin"),
                    (SCRIPT, "is script or style inside a page, which the policy of pages forbids"),
                    (SAID_UNQUOTED, "prints into an attribute without quotes"),
                ):
                    found += [
                        Finding(place, number, f"`{one.group().strip()}` {why}") for one in pattern.finditer(line)
                    ]
    for source in sources(tree, *PRODUCT):
        if source.place in MARKS_SAFE:
            continue
        for node in ast.walk(source.syntax):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name == "mark_safe" or (name == "SafeString" and _is_called(node, source.syntax)):
                found.append(source.finding(node, f"`{name}`: HTML is made by templates and base.text alone"))
    return found


def _is_called(node: ast.AST, syntax: ast.Module) -> bool:
    return any(isinstance(one, ast.Call) and one.func is node for one in ast.walk(syntax))
