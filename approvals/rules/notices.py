"""What a notice says: never more than a channel may be told, and nothing in it decides (RULES A5, A13, A14).

Names and reasons come from models and servers: here they are one visible line each, and mark nothing up for a chat
service. Every link opens a page.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from base import figures
from base.visible import visible

MOST_LISTED: Final = 20  # questions named one by one
ARGUMENTS: Final = 2_000  # characters of arguments
NAME: Final = 120  # characters of a name
WHY: Final = 300
TITLES: Final = {"unknown": "Did {name} happen?", "retry": "May {name} be tried again?", "session": "What of {name}?"}


@dataclass(frozen=True, slots=True)
class Told:
    """One question as it may be told. `arguments` is None where they are not; `ended` says how it was closed."""

    id: str
    kind: str
    name: str
    agent: str
    why: str
    opened_at: datetime
    expires_at: datetime | None
    url: str
    arguments: str | None = None
    ended: str = ""

    @property
    def title(self) -> str:
        """The question in one line."""
        return TITLES.get(self.kind, "May {name} run?").replace("{name}", said(self.name))


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice, complete. `waiting` is how many questions are open by then, to 1,001; `more` are not named."""

    id: str
    about: str
    at: datetime
    workspace: str
    questions: tuple[Told, ...]
    more: int
    waiting: int
    url: str  # of the queue

    @property
    def count(self) -> int:
        """How many questions it tells of."""
        return len(self.questions) + self.more


def heading(notice: Notice) -> str:
    """The subject of an email and the first line of a text."""
    if notice.about == "test":
        return f"A test from oz0 studio, workspace {said(notice.workspace)}"
    first = notice.questions[0] if notice.questions else None
    if notice.count != 1 or first is None:
        what = figures.plural(notice.count, "question")
        says = {"asked": "waiting", "expiring": "about to expire", "closed": "closed"}.get(
            notice.about, "still waiting"
        )
        return f"{what} {says}"
    match notice.about:
        case "asked":
            return first.title
        case "expiring" if first.expires_at is not None:
            left = figures.duration(max(0.0, (first.expires_at - notice.at).total_seconds()))
            return f"Expires in {left}: {first.title}"
        case "closed":
            return f"{first.ended}: {first.title}"
        case _:
            return f"Still waiting: {first.title}"


def text(notice: Notice) -> str:
    """The whole notice in plain words."""
    if notice.about == "test":
        return f"{heading(notice)}.\nNotices of questions arrive here like this one.\n\n{notice.url}\n"
    lines = [heading(notice), ""]
    for told in notice.questions:
        lines += _lines(told, notice)
    if notice.more:
        lines += [f"and {notice.more:,} more.", ""]
    lines += [f"{figures.capped(notice.waiting)} waiting in {said(notice.workspace)}: {notice.url}"]
    lines += ["Answers are given on the page, signed in. Opening a link decides nothing."]
    return "\n".join(lines) + "\n"


def _lines(told: Told, notice: Notice) -> Sequence[str]:
    lines = [] if notice.count == 1 else [told.title]
    if told.ended:
        lines += [told.ended]
    lines += [f"Why it waits: {said(told.why, WHY)}" if not told.ended else f"Why it waited: {said(told.why, WHY)}"]
    lines += [f"Agent {said(told.agent)}, since {told.opened_at:%Y-%m-%d %H:%M} UTC"]
    if told.expires_at is not None and not told.ended:
        lines += [f"Expires {told.expires_at:%Y-%m-%d %H:%M} UTC"]
    if told.arguments is not None:
        lines += [f"Arguments: {said(told.arguments, ARGUMENTS)}"]
    return [*lines, told.url, ""]


def payload(notice: Notice, *, slack: bool) -> bytes:
    """The body of a webhook: the notice as JSON, or as the `text` that chat services take."""
    plain = {"mrkdwn": False, "unfurl_links": False, "unfurl_media": False}
    document = {"text": _escaped(text(notice)), **plain} if slack else _document(notice)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _document(notice: Notice) -> Mapping[str, Any]:
    return {
        "id": notice.id,
        "about": notice.about,
        "at": notice.at.isoformat(),
        "workspace": said(notice.workspace),
        "heading": heading(notice),
        "questions": [_question(told) for told in notice.questions],
        "more": notice.more,
        "waiting": notice.waiting,
        "url": notice.url,
    }


def _question(told: Told) -> Mapping[str, Any]:
    about: dict[str, Any] = {
        "id": told.id,
        "kind": told.kind,
        "title": told.title,
        "function": said(told.name),
        "agent": said(told.agent),
        "why": said(told.why, WHY),
        "opened_at": told.opened_at.isoformat(),
        "expires_at": told.expires_at.isoformat() if told.expires_at else None,
        "url": told.url,
    }
    if told.ended:
        about["ended"] = told.ended
    if told.arguments is not None:
        about["arguments"] = said(told.arguments, ARGUMENTS)
    return about


def said(words: str, limit: int = NAME) -> str:
    """Words that are not ours, on one line, with nothing hidden in them and no address to be followed."""
    return visible(words, limit).replace("://", "[:]//")


def _escaped(words: str) -> str:
    """Text that a chat service shows as it is: no mention, no link in disguise, no mark-up by our untrusted parts."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "'").replace("*", "∗")
