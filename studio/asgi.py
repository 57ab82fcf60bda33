"""What Daphne serves: pages and interfaces over HTTP, whether it is ready, nudges over websockets."""

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
pages = get_asgi_application()  # sets Django up, which the next imports need

from jobs.consumers import websocket_urlpatterns  # noqa: E402
from studio import health  # noqa: E402
from studio.celery import app  # noqa: E402

wakes_by = app  # imported so that work accepted here wakes nodes through the broker of the settings

type Message = Mapping[str, Any]


async def http(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Whether the studio is ready, which no sign-in and no host name stands before; else its pages."""
    if scope["path"] not in health.PATHS:
        await pages(scope, receive, send)
        return
    status, said = await database_sync_to_async(health.told)(scope["path"])
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})


application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
