"""The template tags and filters of every page; the settings make them built in, so no template loads them."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from base import figures, text
from base.status import status as look

register = template.Library()
ICONS: Final = "icons.svg"


@register.simple_tag
def icon(name: str) -> SafeString:
    """One icon of the sprite, as decoration: the word beside it says the same."""
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static(ICONS),
        name,
    )


@register.simple_tag
def status(of: str, state: str, extra: str = "") -> SafeString:
    """A state as icon, word and colour. `extra` is a class: `bare` is without the pill, `mute` hides the word."""
    seen = look(of, state)
    return format_html(
        '<span class="status tone-{}{}" title="{}">{}<span class="word">{}</span></span>',
        seen.tone,
        f" {extra}" if extra else "",
        seen.says,
        icon(seen.icon),
        seen.word,
    )


@register.simple_tag
def tone(of: str, state: str) -> str:
    """The colour class of a state, for segments and edges."""
    return f"tone-{look(of, state).tone}"


@register.filter
def safe_text(value: object, limit: int = text.LONG) -> SafeString:
    """Untrusted text, inline, in its own box."""
    return text.safe_text(value, limit)


@register.filter
def safe_short(value: object, limit: int = 80) -> SafeString:
    """Untrusted text for a list or a link: cut without a way to open it."""
    return text.safe_short(value, limit)


@register.filter
def safe_block(value: object, limit: int = text.LONG) -> SafeString:
    """Untrusted text that keeps its lines."""
    return text.safe_block(value, limit)


@register.filter
def safe_json(value: Any, limit: int = text.LONG) -> SafeString:
    """An untrusted JSON value, indented, in its own box."""
    return text.safe_block(text.pretty(value), limit)


@register.filter
def safe_title(value: object) -> str:
    """Untrusted text for an attribute or the page's title: one line, escapes visible, 120 characters at most."""
    return text.visible(str(value), 120)


@register.filter
def as_words(code: str) -> str:
    """`api_key` as a person reads it."""
    return code.replace("_", " ")


@register.filter
def duration(span: timedelta | float | None) -> str:
    """A span of time in short words."""
    return figures.duration(span)


@register.filter
def mark(seconds: float) -> str:
    """A round number of seconds at a mark of a ruler."""
    return figures.duration(seconds, round_one=True)


@register.filter
def size(count: int) -> str:
    """A number of bytes in short words."""
    return figures.size(count)


@register.filter
def thousands(count: int) -> str:
    """A whole number as `12,345`."""
    return f"{count:,}"


@register.filter
def capped(count: int) -> str:
    """A count that stops at 1,000+."""
    return figures.capped(count)


@register.simple_tag
def count_of(number: int, one: str, many: str = "") -> str:
    """`1 call`, `2 calls`."""
    return figures.plural(number, one, many)


@register.simple_tag
def share(part: float, whole: float, tone: str = "") -> SafeString:
    """A bar of `part` in `whole`, as decoration: the figure stands beside it.

    A part past the whole is the whole bar, and what is too much of it has the tone of what is wrong.
    """
    most = max(part, whole) or 1
    fits, over = 100 * min(part, whole) / most, 100 * max(0.0, part - whole) / most
    return format_html(
        '<svg class="bar{}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="ground" width="100" height="6"/><rect class="got" width="{}" height="6"/>'
        '<rect class="too-much" x="{}" width="{}" height="6"/></svg>',
        f" tone-{tone}" if tone else "",
        f"{max(1.0, fits) if part else 0:.1f}",
        f"{fits:.1f}",
        f"{over:.1f}",
    )


@register.simple_tag
def stacked(whole: Decimal | None, *parts: str | Decimal) -> SafeString:
    """A bar of several parts in `whole`, as decoration: a tone, its amount, the next. Without a whole they fill it.

    Where they pass the whole, a line is drawn at its end.
    """
    pairs = [(str(parts[n]), Decimal(parts[n + 1])) for n in range(0, len(parts), 2)]
    total = sum((amount for _, amount in pairs), Decimal(0))
    most = max(total, whole or Decimal(0)) or Decimal(1)
    rects, at = [], Decimal(0)
    for tone_of, amount in pairs:
        width = 100 * amount / most
        if width:
            rects.append((f"tone-{tone_of}", f"{at:.2f}", f"{max(width, Decimal(1)):.2f}"))
        at += width
    if whole is not None and total > whole:
        rects.append(("limit-mark", f"{100 * whole / most:.2f}", "0.6"))
    return format_html(
        '<svg class="bar parts" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="ground" width="100" height="6"/>{}</svg>',
        format_html_join("", '<rect class="{}" x="{}" width="{}" height="6"/>', rects),
    )


@register.filter
def dollars(amount: Decimal | None) -> str:
    """An amount of US dollars to its last digit, two places at least: `$0.25`, `$0.000125`."""
    return figures.dollars(amount)


@register.filter
def dollars_over(amount: Decimal) -> str:
    """The same of how far a limit was passed, which is kept as less than nothing."""
    return figures.dollars(-amount)


@register.filter
def plain_amount(amount: Decimal) -> str:
    """An amount as a person would type it."""
    return f"{amount.normalize():f}"


@register.simple_tag
def moment(at: datetime | None, now: datetime | None = None) -> SafeString:
    """A time of day with the full moment in its title; with a date when it is another day than `now`'s."""
    if at is None:
        return SafeString()
    shown = at.strftime("%H:%M:%S") if now is None or at.date() == now.date() else at.strftime("%d %b %H:%M:%S")
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        at.isoformat(),
        at.strftime("%Y-%m-%d %H:%M:%S"),
        shown,
    )


@register.simple_tag
def span_of(first: datetime, last: datetime, now: datetime) -> SafeString:
    """When something went on: from one moment to another, or the one moment when they read the same."""
    left, right = moment(first, now), moment(last, now)
    return left if f"{first:%d%H%M%S}" == f"{last:%d%H%M%S}" else format_html("{} to {}", left, right)


@register.simple_tag
def elapsed(since: datetime | None, now: datetime, until: datetime | None = None, element: str = "span") -> SafeString:
    """The span from `since` to `until`; while there is no end it ticks in the browser, from the database's `now`."""
    if since is None:
        return SafeString()
    if until is not None:
        return format_html("<span>{}</span>", figures.duration(until - since))
    seconds = max(0.0, (now - since).total_seconds())
    return format_html('<{0} data-elapsed="{1}">{2}</{0}>', element, f"{seconds:.1f}", figures.duration(seconds))


@register.simple_tag
def countdown(at: datetime | None, now: datetime, element: str = "span") -> SafeString:
    """The span from `now` until `at`; it ticks down in the browser."""
    if at is None:
        return SafeString()
    seconds = max(0.0, (at - now).total_seconds())
    return format_html('<{0} data-countdown="{1}">{2}</{0}>', element, f"{seconds:.1f}", figures.duration(seconds))
