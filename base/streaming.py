"""Long answers that are never whole in memory: a file made line by line while it is sent, and news as they come."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

TOGETHER: Final = 64 * 1024  # bytes that are sent at once, at least


def download(request: HttpRequest, chunks: Iterator[str], *, name: str, kind: str) -> StreamingHttpResponse:
    """`chunks` as a file called `name`; each is asked for only when the one before it has left."""
    gathered = _gathered(chunks)
    content = _as_asked(gathered) if isinstance(request, ASGIRequest) else gathered
    answer = StreamingHttpResponse(content, content_type=kind)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["Cache-Control"] = "no-store"
    return answer


def _gathered(chunks: Iterator[str]) -> Iterator[bytes]:
    waiting = bytearray()
    for chunk in chunks:
        waiting += chunk.encode("utf-8", "backslashreplace")
        if len(waiting) >= TOGETHER:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


async def _as_asked(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same for a server with a loop, each chunk made on a thread that may wait for the database."""

    def more() -> bytes | None:
        return next(chunks, None)

    while (chunk := await sync_to_async(more)()) is not None:
        yield chunk


class Following(HttpResponse):
    """An answer that goes on for as long as somebody listens.

    `studio.asgi` sends it once the request itself is done, whose thread and connection it gives back before.
    """

    def __init__(self, news: AsyncGenerator[bytes], *, content_type: str) -> None:
        super().__init__(content_type=content_type)
        self.news = news
        self["X-Accel-Buffering"] = "no"  # a proxy in front passes each piece on as it comes
