"""The draft of a policy as its form carries it from one request to the next: what was pressed, and what is shown."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import QueryDict

from catalog.queries.policy_pages import VersionRow
from catalog.rules.conditions import Is
from catalog.rules.kinds import Kind
from catalog.rules.policy_diff import merge
from catalog.rules.policy_editing import (
    BadDraft,
    arguments_of,
    fields_of,
    moved,
    put,
    read_draft,
    rule_of,
    without,
)
from catalog.rules.policy_rules import STARTERS, Effect, oddities, read_rules

NEW: Final = -1  # the place of a rule that is not in the list yet
EMPTY_CONDITIONS: Final = 2  # rows of the form for conditions that a person may add
FIELDS: Final = (
    *("id", "title", "effect", "kind", "tool", "function", "agent", "starter", "open_world", "tainted"),
    *("rate_calls", "rate_seconds", "rate_of", "repeated", "until"),
)
FOLDED: Final = ("open_world", "tainted", "rate_calls", "rate_seconds", "repeated", "until")
STEPS: Final = ("up", "down", "remove", "edit", "put", "new", "text", "close", "save")
READY: Final[Mapping[str, dict[str, Any]]] = {
    "loop": {"id": "loops", "title": "an agent that repeats itself", "effect": "ask", "repeated": 5},
    "rate": {
        "id": "rate",
        "title": "not too many at once",
        "effect": "wait",
        "rate": {"calls": 30, "seconds": 60},
    },
}


@dataclass(frozen=True, slots=True)
class Draft:
    """Rules that are not saved. `open` is the place of the rule whose form is shown, `typed` what was typed there."""

    rules: list[Any]
    seen: int
    note: str = ""
    do: str = ""
    open: int | None = None
    typed: Any = None
    text: str | None = None  # the whole as it was typed, when it could not be read
    error: str = ""
    troubles: tuple[str, ...] = ()
    status: int = 200

    def with_error(self, error: str, *troubles: str, status: int = 422) -> "Draft":
        """The same with what is wrong."""
        return replace(self, error=error, troubles=troubles, status=status)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody saved `theirs` while this person was editing; `clashes` name the rules that both changed."""

    theirs: VersionRow
    clashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """The form of one rule. `fields` is None where only its text can show all of it."""

    place: int
    fields: Mapping[str, str] | None
    arguments: tuple[tuple[str, str, str], ...]
    text: str
    ways: tuple[str, ...] = tuple(Is)
    effects: tuple[str, ...] = tuple(Effect)
    kinds: tuple[str, ...] = tuple(Kind)
    starters: tuple[str, ...] = STARTERS

    @property
    def effect(self) -> str:
        """What is chosen of `effects`: asking, where the rule says nothing that can be read."""
        said = (self.fields or {}).get("effect", "")
        return said if said in self.effects else Effect.ASK

    @property
    def chosen_kinds(self) -> list[str]:
        """The kinds that are ticked."""
        return (self.fields or {}).get("kind", "").split()

    @property
    def chosen_starters(self) -> list[str]:
        """The starters that are ticked."""
        return (self.fields or {}).get("starter", "").split()

    @property
    def more(self) -> bool:
        """Whether anything of the part that is folded away is filled in."""
        return any((self.fields or {}).get(name) for name in FOLDED)


def posted(form: QueryDict) -> Draft:
    """The draft after the step that was pressed. A step that is none, or a draft that is none, changes nothing."""
    do, _, where = form.get("do", "").partition(":")
    draft = Draft([], seen=number(form.get("seen", "")), note=form.get("note", ""), do=do)
    try:
        draft = replace(draft, rules=read_draft(form.get("draft", "")))
    except BadDraft as error:
        return draft.with_error("The draft that the form carried cannot be read", str(error), status=400)
    if do not in STEPS:
        return draft.with_error("Nothing was done: the form named no step", status=400)
    return _stepped(draft, do, where, form)


def _stepped(draft: Draft, do: str, where: str, form: QueryDict) -> Draft:
    place = number(where) if where else NEW
    match do:
        case "up" | "down":
            return replace(draft, rules=moved(draft.rules, place, -1 if do == "up" else 1))
        case "remove":
            return replace(draft, rules=without(draft.rules, place))
        case "edit":
            return replace(draft, open=place if place < len(draft.rules) else None)
        case "new":
            return replace(draft, open=NEW, typed=_named_anew(READY.get(where, {"effect": "ask"}), draft.rules))
        case "put":
            return _put(draft, place if place < len(draft.rules) else NEW, form)
        case "text":
            return _from_text(draft, form.get("text", ""))
        case _:
            return draft


def _put(draft: Draft, place: int, form: QueryDict) -> Draft:
    """The rule as the form says it, in its place; one that is odd stays in the form with what is wrong."""
    try:
        rule = _typed(form)
    except BadDraft as error:
        return replace(draft, open=place, typed={}).with_error("The rule cannot be read", str(error))
    odd = read_rules([rule])[0].odd
    rules = put(draft.rules, None if place == NEW else place, rule)
    if not odd:
        odd = tuple(trouble for trouble in oddities(rules) if "has this id" in trouble)
    if odd:
        return replace(draft, open=place, typed=rule).with_error("The rule was not taken", *odd)
    return replace(draft, rules=rules)


def _typed(form: QueryDict) -> Any:
    if text := form.get("rule_text", "").strip():
        return read_draft(f"[{text}]")[0]
    typed = {name: form.get(name, "") for name in FIELDS}
    typed["kind"], typed["starter"] = " ".join(form.getlist("kind")), " ".join(form.getlist("starter"))
    typed["id"] = typed["id"].strip() or _named(typed["title"])
    parts = zip(form.getlist("path"), form.getlist("is"), form.getlist("value"), strict=False)
    return rule_of(typed, [part for part in parts if part[0].strip() or part[2].strip()])


def _named(title: str) -> str:
    """An id from a title: approvals are bound to it, so it stays when the title is changed later."""
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))[:60]


def _from_text(draft: Draft, text: str) -> Draft:
    try:
        return replace(draft, rules=read_draft(text))
    except BadDraft as error:
        return replace(draft, text=text).with_error("The text was not taken", str(error))


def with_pasted(draft: Draft, text: str) -> Draft:
    """A draft with one more rule, as a link of another page brings it."""
    try:
        (rule,) = read_draft(f"[{text}]")
    except (BadDraft, ValueError) as error:
        return draft.with_error("The rule of the link cannot be read", str(error))
    return replace(draft, rules=[*draft.rules, rule])


def put_together(draft: Draft, base: Any, theirs: tuple[VersionRow, Any]) -> tuple[Draft, Conflict]:
    """A draft whose version is not the newest any more: its changes made to the newest."""
    merged = merge(base, draft.rules, theirs[1])
    told = replace(draft, rules=list(merged.rules), seen=theirs[0].number, do="")
    return told, Conflict(theirs[0], merged.clashes)


def form_of(draft: Draft) -> Form | None:
    """The form of the rule that is open."""
    if draft.open is None:
        return None
    rule = draft.typed if draft.typed is not None else draft.rules[draft.open] if draft.open >= 0 else {}
    fields = fields_of(rule)
    rows = arguments_of(rule) if isinstance(rule, Mapping) else []
    return Form(
        draft.open,
        fields,
        (*rows, *[("", "equals", "")] * EMPTY_CONDITIONS),
        json.dumps(rule, ensure_ascii=False, indent=1),
    )


def number(text: str) -> int:
    """A whole number that a form carries; −1, which is the number of nothing, for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else NEW


def _named_anew(rule: Mapping[str, Any], rules: list[Any]) -> dict[str, Any]:
    """A ready rule with an id that no other one has."""
    taken = {read.id for read in read_rules(rules)}
    name, at = str(rule.get("id", "")), 2
    while name in taken:
        name, at = f"{rule['id']}-{at}", at + 1
    return {**rule, **({"id": name} if name else {})}
