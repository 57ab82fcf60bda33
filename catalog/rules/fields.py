"""Reading a map of a plugin's file by its known keys: every odd key and value becomes a `Problem`, none is guessed.

A reader goes on after a problem with the key's default, so one run names everything there is to mend.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from base.yaml_files import MAX_BYTES, BadYaml, Located, load
from catalog.rules.problems import Problem

NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?\Z")
NAME_WORDS: Final = "letters, digits, _ and -, beginning and ending with a letter or digit, at most 64"

MOST_TOLD: Final = 50  # unknown keys of one map


@dataclass(slots=True)
class Notes:
    """The problems of one file, gathered while it is read."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)  # of every key read, by its path

    def add(self, line: int, key: str, message: str, fix: str) -> None:
        """Note one problem."""
        self.problems.append(Problem(self.file, line, key, message, fix))

    def document(self, content: bytes) -> "Fields | None":
        """The file's one map, or None after noting why it cannot be read."""
        if len(content) > MAX_BYTES:  # before anything is made of it
            fix = "move long texts into skills, or split it"
            self.add(1, "", f"the file is larger than {MAX_BYTES // 1024} KiB", fix)
            return None
        try:
            root = load(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            self.add(content.count(b"\n", 0, error.start) + 1, "", "the file is not UTF-8 text", "save it as UTF-8")
            return None
        except BadYaml as error:
            self.add(error.line, "", error.message, error.fix)
            return None
        if not isinstance(root.value, dict):
            self.add(root.line, "", f"expected a map of keys, found {described(root)}", "write `key: value` lines")
            return None
        return Fields(self, root, "")


class Fields:
    """One map being read. Each `take` names a known key; `done` refuses the keys nobody asked for."""

    def __init__(self, notes: Notes, item: Located, path: str) -> None:
        self.notes = notes
        self.line = item.line
        self.path = path
        self._entries: dict[str, Any] = item.value
        self._known: list[str] = []

    def key(self, name: str) -> str:
        """The path of a key in this map, as problems name it."""
        return f"{self.path}.{name}" if self.path else name

    def line_of(self, name: str) -> int:
        """The line of a key, or of the map when the key is left out."""
        return self._entries[name].line if name in self._entries else self.line

    def has(self, name: str) -> bool:
        """Whether the key is written."""
        return name in self._entries

    def note(self, name: str, message: str, fix: str) -> None:
        """Note a problem at one key of this map."""
        self.notes.add(self.line_of(name), self.key(name), message, fix)

    def take(self, name: str) -> Located | None:
        """The value of a known key, or None when it is left out."""
        self._known.append(name)
        self.notes.lines[self.key(name)] = self.line_of(name)
        entry = self._entries.get(name)
        return entry.item if entry is not None else None

    def need(self, name: str, fix: str) -> bool:
        """Note that a key is missing, with how to write it. Whether it is there."""
        if name not in self._entries:
            self.notes.add(self.line, self.key(name), "is missing", fix)
            return False
        return True

    def text(self, name: str, default: str = "", *, longest: int = 20_000) -> str:
        """A key that holds text of at most `longest` characters."""
        item = self.take(name)
        if item is None:
            return default
        return self._text(item, self.key(name), longest) or default

    def name(self, name: str, fix: str) -> str:
        """A required key that holds a name (RULES C1)."""
        item = self.take(name)
        if item is None:
            self.need(name, fix)
            return ""
        if not isinstance(item.value, str) or not NAME.match(item.value):
            self.note(name, f"{shown(item)} is not a name", f"write {NAME_WORDS}")
            return ""
        return item.value

    def word(self, name: str, words: Sequence[str], default: str) -> str:
        """A key that holds one of a few words."""
        item = self.take(name)
        if item is None:
            return default
        if item.value not in words:
            self.note(name, f"{shown(item)} is not one of {', '.join(words)}", f"write {' or '.join(words)}")
            return default
        return str(item.value)

    def flag(self, name: str) -> bool:
        """A key that holds true or false; left out, it is false."""
        item = self.take(name)
        if item is None:
            return False
        if not isinstance(item.value, bool):
            self.note(name, f"expected true or false, found {described(item)}", "write true or false")
            return False
        return item.value

    def number(self, name: str, default: float, *, least: float, most: float, unit: str) -> float:
        """A key that holds a number between two bounds, both allowed."""
        item = self.take(name)
        if item is None:
            return default
        value = item.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            self.note(
                name,
                f"expected a number of {unit} from {least:g} to {most:g}, found {described(item)}",
                f"write a number, or leave it out for {default:g}",
            )
            return default
        return float(value)

    def count(self, name: str, default: int, *, least: int = 1, most: int) -> int:
        """A key that holds a whole number between two bounds, both allowed."""
        item = self.take(name)
        if item is None:
            return default
        value = item.value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.note(
                name,
                f"expected a whole number from {least:,} to {most:,}, found {described(item)}",
                f"write a whole number, or leave it out for {default:,}",
            )
            return default
        return value

    def texts(self, name: str, *, longest: int = 4_000) -> tuple[str, ...]:
        """A key that holds a list of texts."""
        found = (self._text(item, f"{self.key(name)}[{at}]", longest) for at, item in enumerate(self.items(name)))
        return tuple(text for text in found if text)

    def items(self, name: str) -> tuple[Located, ...]:
        """A key that holds a list."""
        item = self.take(name)
        if item is None:
            return ()
        if not isinstance(item.value, tuple):
            self.note(
                name,
                f"expected a list, found {described(item)}",
                "write each entry on a line that begins with `- `",
            )
            return ()
        return item.value

    def map(self, name: str) -> "Fields | None":
        """A key that holds a map."""
        item = self.take(name)
        return None if item is None else self._map(item, self.key(name))

    def maps(self, name: str) -> tuple["Fields", ...]:
        """A key that holds a list of maps."""
        found = (self._map(item, f"{self.key(name)}[{at}]") for at, item in enumerate(self.items(name)))
        return tuple(fields for fields in found if fields is not None)

    def text_map(self, name: str) -> dict[str, str]:
        """A key that holds a map of texts."""
        fields = self.map(name)
        if fields is None:
            return {}
        return {key: text for key in fields.names() if (text := fields.text(key))}

    def names(self) -> tuple[str, ...]:
        """The keys that are written, in their order."""
        return tuple(self._entries)

    def done(self) -> None:
        """Note every key that nobody asked for, or the first of very many."""
        unknown = [name for name in self._entries if name not in self._known]
        for at, name in enumerate(unknown):
            if at == MOST_TOLD:
                self.note(name, f"and {len(unknown) - at - 1:,} more are not known keys", "take them out")
                break
            near = difflib.get_close_matches(name[:80], self._known, n=1)
            fix = f"did you mean {near[0]}?" if near else f"take it out; known here: {', '.join(self._known)}"
            self.note(name, "is not a known key", fix)

    def _map(self, item: Located, path: str) -> "Fields | None":
        if not isinstance(item.value, dict):
            self.notes.add(
                item.line,
                path,
                f"expected a map of keys, found {described(item)}",
                "write `key: value` lines",
            )
            return None
        return Fields(self.notes, item, path)

    def _text(self, item: Located, path: str, longest: int) -> str:
        if not isinstance(item.value, str) or not item.value.strip():
            self.notes.add(
                item.line,
                path,
                f"expected text, found {described(item)}",
                "write text; quote what looks like a number",
            )
            return ""
        if len(item.value) > longest:
            self.notes.add(item.line, path, f"is {len(item.value):,} characters long", f"keep it to {longest:,}")
            return ""
        return item.value


def twice(names: Iterable[str]) -> frozenset[str]:
    """The names that occur more than once."""
    return frozenset(name for name, count in Counter(names).items() if count > 1)


def described(item: Located) -> str:
    """What kind of value this is, in words, with the value when it is short."""
    match item.value:
        case None:
            return "nothing"
        case bool():
            return f"the word {str(item.value).lower()}"
        case tuple():
            return "a list"
        case dict():
            return "a map"
        case str():
            return f"the text {shown(item)}"
        case _:
            return f"the number {shown(item)}"


def shown(item: Located) -> str:
    """A short, quoted spelling of a value."""
    if isinstance(item.value, tuple | dict) or item.value is None:
        return described(item)
    text = str(item.value).lower() if isinstance(item.value, bool) else repr(item.value)
    return text if len(text) <= 60 else text[:57] + "..."
