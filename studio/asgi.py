"""What Daphne serves: pages and interfaces over HTTP, nudges over websockets."""

import importlib
import importlib.util
import os
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
pages = get_asgi_application()  # sets Django up; what follows needs it


def _sockets() -> list[Any]:
    importlib.import_module("studio.celery")  # so that waking finds the broker named in the settings
    if importlib.util.find_spec("jobs.consumers") is None:
        return []
    return list(importlib.import_module("jobs.consumers").websocket_urlpatterns)


application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(_sockets()))),
    }
)
