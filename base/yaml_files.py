"""YAML that people write by hand, read strictly: every value keeps its line, and nothing can blow up.

Only the plain data of YAML is read: text, numbers, true and false, null, lists and maps with text keys. `yes`, `on`
and dates stay text, tags are refused, and so are keys written twice. Aliases are allowed but counted: a file that
would unfold to more than `MAX_NODES` values is refused before it is unfolded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml
from yaml.reader import ReaderError

MAX_BYTES: Final = 256 * 1024
MAX_DIGITS: Final = 400  # of one number
MAX_NODES: Final = 8_000
MAX_DEPTH: Final = 32

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,18}\Z")
_NUMBER: Final = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?\Z")
_BEGIN_NUMBERS: Final = frozenset("0123456789+-.")


class BadYaml(ValueError):
    """A file that cannot be read. `line` counts from 1; `fix` says what to write instead."""

    def __init__(self, line: int, message: str, fix: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Located:
    """A value and the line it starts on, from 1. `size` is how many values it holds, itself and aliases included.

    `value` is None, a bool, an int, a float, a str, a tuple of `Located`, or a dict of text to `Entry`.
    """

    value: Any
    line: int
    size: int = 1

    def plain(self) -> Any:
        """The same data without lines: lists and dicts as JSON has them."""
        if isinstance(self.value, tuple):
            return [item.plain() for item in self.value]
        if isinstance(self.value, dict):
            return {key: entry.item.plain() for key, entry in self.value.items()}
        return self.value


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a map: the line of the key, and its value."""

    line: int
    item: Located


@dataclass(slots=True)
class _Open:
    """A list or map whose end has not been reached. `key` is the map's key that waits for its value."""

    line: int
    anchor: str | None
    items: list[Located] | dict[str, Entry]
    key: tuple[str, int] | None = None
    size: int = 1


def load(text: str) -> Located:
    """The one document of `text`. Raises `BadYaml`, naming the line and the fix."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadYaml(1, f"the file is larger than {MAX_BYTES // 1024} KiB", "move long texts into skills, or split it")
    try:
        return _Builder().build(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = error.problem or error.context or "this is not YAML"
        raise BadYaml(
            mark.line + 1 if mark else 1, said, "look at the quotes, colons and indents on this line"
        ) from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        said = (
            f"the character U+{error.character:04X} cannot stand in YAML"
            if isinstance(error.character, int)
            else "this is not YAML"
        )
        raise BadYaml(line, said, "save the file as UTF-8 text without control characters") from error
    except yaml.YAMLError as error:
        raise BadYaml(
            1, f"this is not YAML: {error}", "save the file as UTF-8 text without control characters"
        ) from error


class _Builder:
    def __init__(self) -> None:
        self.open: list[_Open] = []
        self.named: dict[str, Located] = {}
        self.root: Located | None = None
        self.total = 0

    def build(self, events: Iterator[yaml.Event]) -> Located:
        for event in events:
            line = event.start_mark.line + 1 if event.start_mark else 1
            match event:
                case yaml.DocumentStartEvent():
                    if self.root is not None:
                        raise BadYaml(line, "a second document starts here", "keep one document in a file")
                case yaml.ScalarEvent():
                    _refuse_tag(event.tag, line)
                    self._scalar(event, line)
                case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                    _refuse_tag(event.tag, line)
                    self._refuse_as_key(line)
                    if len(self.open) >= MAX_DEPTH:
                        raise BadYaml(line, f"nested deeper than {MAX_DEPTH} levels", "flatten it")
                    items: list[Located] | dict[str, Entry] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
                    self.open.append(_Open(line, event.anchor, items))
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    done = self.open.pop()
                    value: Any = tuple(done.items) if isinstance(done.items, list) else done.items
                    self._place(Located(value, done.line, done.size), done.anchor)
                case yaml.AliasEvent():
                    self._refuse_as_key(line)
                    if event.anchor not in self.named:
                        raise BadYaml(
                            line,
                            f"*{event.anchor} stands before its &{event.anchor} has ended",
                            "write it out",
                        )
                    self._place(self.named[event.anchor], None)
        return self.root or Located(None, 1)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        top = self.open[-1] if self.open else None
        if top is not None and isinstance(top.items, dict) and top.key is None:
            if event.value == "<<" and event.implicit[0]:
                raise BadYaml(line, "merge keys (<<) are not read", "write out the keys that it stands for")
            if event.value in top.items:
                raise BadYaml(
                    line,
                    f"the key {event.value!r} is here twice, first on line {top.items[event.value].line}",
                    "keep one of them",
                )
            top.key = (event.value, line)
            return
        value = _resolved(event.value, line) if event.implicit[0] else event.value
        self._place(Located(value, line), event.anchor)

    def _refuse_as_key(self, line: int) -> None:
        top = self.open[-1] if self.open else None
        if top is not None and isinstance(top.items, dict) and top.key is None:
            raise BadYaml(line, "a key is not plain text", "write keys as plain text")

    def _place(self, item: Located, anchor: str | None) -> None:
        if anchor is not None:
            self.named[anchor] = item
        self.total += 1
        if item.size > MAX_NODES or self.total > MAX_NODES:
            raise BadYaml(item.line, f"this unfolds to more than {MAX_NODES} values", "use fewer aliases and values")
        if not self.open:
            self.root = item
            return
        top = self.open[-1]
        top.size += item.size
        if isinstance(top.items, list):
            top.items.append(item)
        elif top.key is not None:
            key, line = top.key
            top.items[key] = Entry(line, item)
            top.key = None


def _refuse_tag(tag: str | None, line: int) -> None:
    if tag is not None:
        raise BadYaml(line, f"the tag {tag!r} is not read", "write the value without a tag; quote it to keep it text")


def _resolved(text: str, line: int) -> Any:
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INTEGER.match(text):
        return int(text)
    if text[:1] in _BEGIN_NUMBERS and _NUMBER.match(text):
        if len(text) > MAX_DIGITS:
            raise BadYaml(line, f"a number has more than {MAX_DIGITS} characters", "write a shorter one, or quote it")
        number = float(text)
        return number if abs(number) != float("inf") else text
    return text
