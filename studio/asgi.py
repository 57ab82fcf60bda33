"""What Daphne serves: pages and interfaces over HTTP, nudges over websockets."""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
pages = get_asgi_application()  # sets Django up, which the next imports need

from jobs.consumers import websocket_urlpatterns  # noqa: E402
from studio.celery import app  # noqa: E402

wakes_by = app  # imported so that work accepted here wakes nodes through the broker of the settings

application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
