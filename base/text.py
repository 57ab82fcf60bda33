"""Safe display of text we did not write: what is hidden is made visible, and nothing of it can pass for ours.

Arguments, results, names and reasons come from models, servers and people. `safe_text` is the one way they reach a
page, `visible` the one way they reach a terminal, a log line or an attribute (RULES A13).
"""

import json
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from base.visible import LONG, Kind, Piece, is_hidden, pieces, visible

__all__ = ["LONG", "Kind", "Piece", "is_hidden", "pieces", "pretty", "safe_block", "safe_short", "safe_text", "visible"]

EXACT: Final = 2**53


def safe_text(text: object, limit: int = LONG) -> SafeString:
    """One inline box of HTML around untrusted `text`, in its own direction, with hidden characters shown.

    Past `limit` characters the rest folds behind "show all".
    """
    raw = text if isinstance(text, str) else str(text)
    head = format_html('<bdi class="said">{}</bdi>', _html(raw[:limit]))
    if len(raw) <= limit:
        return head
    return format_html(
        '{}<details class="more"><summary>… show all {} characters</summary><bdi class="said">{}</bdi></details>',
        head,
        f"{len(raw):,}",
        _html(raw[limit:]),
    )


def safe_short(text: object, limit: int = 80) -> SafeString:
    """One inline box that is cut at `limit` without a way to open it: for lists, and inside links."""
    raw = text if isinstance(text, str) else str(text)
    cut = "…" if len(raw) > limit else ""
    return format_html('<bdi class="said">{}{}</bdi>', _html(raw[:limit].replace("\n", " ")), cut)


def safe_block(text: object, limit: int = LONG) -> SafeString:
    """The same as `safe_text`, as a block that keeps lines: for arguments, results and error texts."""
    raw = text if isinstance(text, str) else str(text)
    if len(raw) <= limit:
        return format_html('<pre class="said" tabindex="0" dir="auto">{}</pre>', _html(raw))
    return format_html(
        '<pre class="said" tabindex="0" dir="auto">{}…</pre><details class="more">'
        '<summary>Show all {} characters</summary><pre class="said" tabindex="0" dir="auto">{}</pre></details>',
        _html(raw[:limit]),
        f"{len(raw):,}",
        _html(raw),
    )


def pretty(value: Any) -> str:
    """`value` as indented JSON, keys in order, numbers as they are sent. Show it with `safe_block`."""
    return json.dumps(_whole(value), indent=2, ensure_ascii=False, sort_keys=True, default=str)


def _whole(value: Any) -> Any:
    """Whole numbers without a point, as they are canonically written and sent (RFC 8785)."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _html(text: str) -> SafeString:
    return format_html_join("", "{}", ((_piece_html(piece),) for piece in pieces(text)))


def _piece_html(piece: Piece) -> str | SafeString:
    match piece.kind:
        case Kind.PLAIN:
            return piece.text
        case Kind.HIDDEN:
            return format_html('<mark class="hidden-char" title="{}">{}</mark>', piece.note, piece.text)
        case Kind.PADDING:
            return format_html('<mark class="padding">{}</mark>', piece.text)
        case Kind.ODD:
            return format_html('<mark class="odd-char" title="{}">{}</mark>', piece.note, piece.text)
