"""Finding functions by words of what they do: what `oz.find` ranks by, for agents that load lazily (RULES T4).

The words of a function's name, of its arguments' names and of its description are weighed by how rare they are among
the functions of the agent (BM25 over weighted fields). The same words over the same functions give the same order.
"""

import difflib
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

QUERY_LONGEST: Final = 1_000  # characters of a query that are looked at
_TERMS_MOST: Final = 40
_GUESSES_MOST: Final = 4  # terms of a query that are taken for misspelt: comparing is dear
_GUESSED_LONGEST: Final = 40
_NAME, _TOOL, _ARGUMENT, _DESCRIPTION = 5.0, 2.0, 2.0, 1.0  # what a word in each place counts
_DESCRIPTION_MOST: Final = 400  # words of a description that count
_SATURATION, _LENGTH = 1.2, 0.4
_BEGINS, _NEAR = 0.6, 0.4  # what a word that begins alike, or is spelt nearly so, counts
_LEAST_BEGINNING: Final = 4

_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")  # written without spaces: pairs of signs
_SAY_NOTHING: Final = frozenset(
    (  # words that are in every description
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "do",
        "for",
        "from",
        "how",
        "i",
        "in",
        "into",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "our",
        "that",
        "the",
        "their",
        "them",
        "this",
        "to",
        "we",
        "what",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
        "you",
        "your",
    )
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One function as it is looked for: its name as the model calls it, what it says, the names of its arguments."""

    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shelf:
    """Functions to look through. Made once for the same functions, with `shelve`."""

    names: tuple[str, ...]
    weights: Mapping[str, Mapping[str, float]] = field(repr=False)  # by word, then by name
    lengths: Mapping[str, float] = field(repr=False)

    def ranked(self, query: str) -> list[str]:
        """The names that fit the query, the best first, equal ones by name. Without words: every name in its order."""
        asked = _asked(query)
        if not asked:
            return list(self.names)
        usual = sum(self.lengths.values()) / max(1, len(self.lengths))
        scores: dict[str, float] = defaultdict(float)
        covered: Counter[str] = Counter()
        guesses = _GUESSES_MOST
        for term in asked:
            words = self._words(term)
            if not words and guesses:
                guesses -= 1
                words = self._spelt_nearly(term)
            for name, score in self._scores(words, usual).items():
                scores[name] += score
                covered[name] += 1
        exact = query.strip().replace(".", "__", 1).casefold()
        for name in self.names:
            if name.casefold() == exact:
                scores[name] = math.inf
        order = {name: score * (0.5 + covered[name] / (2 * len(asked))) for name, score in scores.items()}
        return sorted(order, key=lambda name: (-round(order[name], 9), name))

    def _scores(self, words: Sequence[tuple[str, float]], usual: float) -> dict[str, float]:
        """What the words that a term stands for give each function: the best of them."""
        found: dict[str, float] = {}
        for word, share in words:
            places = self.weights[word]
            rare = math.log(1 + (len(self.names) - len(places) + 0.5) / (len(places) + 0.5))
            for name, weight in places.items():
                longer = 1 - _LENGTH + _LENGTH * self.lengths[name] / (usual or 1.0)
                score = share * rare * weight * (_SATURATION + 1) / (weight + _SATURATION * longer)
                found[name] = max(found.get(name, 0.0), score)
        return found

    def _words(self, term: str) -> list[tuple[str, float]]:
        """The words on the shelf that a term stands for: itself, and those that begin alike."""
        words = [(term, 1.0)] if term in self.weights else []
        if len(term) >= _LEAST_BEGINNING:
            words += [(word, _BEGINS) for word in self.weights if word != term and word.startswith(term)]
        begun = (term[:most] for most in range(_LEAST_BEGINNING, len(term)))
        return words + [(word, _BEGINS) for word in begun if word in self.weights]

    def _spelt_nearly(self, term: str) -> list[tuple[str, float]]:
        """The words that a misspelt term may stand for."""
        if not _LEAST_BEGINNING <= len(term) <= _GUESSED_LONGEST:
            return []
        return [(word, _NEAR) for word in difflib.get_close_matches(term, sorted(self.weights), n=3, cutoff=0.75)]


def shelve(entries: Iterable[Entry]) -> Shelf:
    """A shelf of these functions."""
    weights: dict[str, dict[str, float]] = defaultdict(dict)
    lengths: dict[str, float] = {}
    names = []
    for entry in entries:
        names.append(entry.name)
        tool, _, function = entry.name.partition("__")
        counted: Counter[str] = Counter()
        for words, weight in (
            (_terms(function), _NAME),
            (_terms(tool), _TOOL),
            ([term for name in entry.arguments for term in _terms(name)], _ARGUMENT),
            (_terms(entry.description)[:_DESCRIPTION_MOST], _DESCRIPTION),
        ):
            for word in words:
                counted[word] += weight  # type: ignore[assignment]  # a counter of weights
        lengths[entry.name] = float(sum(counted.values()))
        for word, weight in counted.items():
            weights[word][entry.name] = weight
    return Shelf(tuple(sorted(names)), weights, lengths)


def near(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Names spelt nearly like this one, the nearest first."""
    wanted = name.replace(".", "__", 1).casefold()[:QUERY_LONGEST]
    folded = {one.casefold(): one for one in sorted(names)}
    found = difflib.get_close_matches(wanted, sorted(folded), n=most, cutoff=0.6)
    ends = [one for one in sorted(folded) if wanted and one.partition("__")[2] == wanted.rpartition("__")[2]]
    return [folded[one] for one in dict.fromkeys([*found, *ends])][:most]


def _asked(query: str) -> Sequence[str]:
    terms = list(dict.fromkeys(_terms(query[:QUERY_LONGEST])))
    telling = [term for term in terms if term not in _SAY_NOTHING]
    return (telling or terms)[:_TERMS_MOST]


def _terms(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text)
    return [
        term
        for word in _WORD.findall(_HUMP.sub(" ", plain))
        for term in (_pairs(word) if _UNSPACED.search(word) else [_stem(word.casefold())])
    ]


def _pairs(word: str) -> list[str]:
    """A word of a script without spaces, as every two signs of it that stand together."""
    return [word[at : at + 2] for at in range(max(1, len(word) - 1))]


def _stem(word: str) -> str:
    """A word without the ending that English gives a plural or a form of a verb."""
    if not word.isascii() or len(word) < 4:
        return word
    if word.endswith("ies"):
        word = f"{word[:-3]}y"
    elif word.endswith("s") and not word.endswith(("ss", "us")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
