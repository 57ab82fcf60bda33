"""Every setting, read once from the environment; `docs/operating.md` lists them.

`oz0 up` writes what it started (addresses, secrets) to `services.json` in the state folder; the environment wins.
"""

import json
import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import environ
from django.contrib.messages import constants as told
from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP

from approvals.rules.channels import smtp_of
from base import log_lines
from studio.stopping import DRAIN, drain_time

log_lines.install()

ROOT: Final = Path(__file__).resolve().parent.parent
OZ0_HOME: Final = Path(os.environ.get("OZ0_HOME", ".oz0")).absolute()


def _services() -> dict[str, str]:
    """What `oz0 up` started, or nothing when it never ran here."""
    file = OZ0_HOME / "services.json"
    try:
        found: dict[str, str] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ImproperlyConfigured(f"{file} is not JSON ({error}); delete it and run `oz0 up` again") from error
    return found


env = environ.Env()
environ.Env.ENVIRON = {**_services(), **os.environ}

SECRET_KEY: str = env.str("OZ0_SECRET_KEY", default="")
if not SECRET_KEY:
    raise ImproperlyConfigured("OZ0_SECRET_KEY is not set: run `oz0 up` here first, or set it to 50 random characters")
OZ0_URL: str = env.str("OZ0_URL", default="http://127.0.0.1:8000")
OZ0_PROXIES: int = env.int("OZ0_PROXIES", default=0)
SECRET_KEY_FALLBACKS: list[str] = env.list("OZ0_OLD_SECRET_KEYS", default=[])
OZ0_LOG: str = env.str("OZ0_LOG", default="text")
if OZ0_LOG not in log_lines.WAYS:
    raise ImproperlyConfigured(f"OZ0_LOG is how processes write their logs: {' or '.join(log_lines.WAYS)}")
LOGGING: dict[str, Any] = log_lines.settings_of(OZ0_LOG)
OZ0_API_RATE: int = env.int("OZ0_API_RATE", default=600)
if not 0 <= OZ0_API_RATE <= 1_000_000:
    raise ImproperlyConfigured("OZ0_API_RATE is how often a token may ask in a minute, to a million; 0 for no limit")
OZ0_GATEWAY_RATE: int = env.int("OZ0_GATEWAY_RATE", default=6_000)
if not 0 <= OZ0_GATEWAY_RATE <= 10_000_000:
    raise ImproperlyConfigured(
        "OZ0_GATEWAY_RATE is how often a token may ask one web process's gateway in a minute; 0 for no limit"
    )
OZ0_BUDGET_RATE: int = env.int("OZ0_BUDGET_RATE", default=6_000)
if not 0 <= OZ0_BUDGET_RATE <= 1_000_000:
    raise ImproperlyConfigured("OZ0_BUDGET_RATE is how often a project's key may ask in a minute; 0 for no limit")
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 2**20  # of what is no file: base.bounded_body bounds each kind of body
DEBUG: bool = env.bool("OZ0_DEBUG", default=False)
ALLOWED_HOSTS: list[str] = env.list("OZ0_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("OZ0_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "channels",
    "django_htmx",
    "tenants",
    "catalog",
    "budgets",
    "jobs",
    "approvals",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "base.bounded_body.BoundedBody",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "studio.other_workspaces.FindElsewhere",
    "base.no_nul.RefuseNul",
]
ROOT_URLCONF = "studio.urls"
ASGI_APPLICATION = "studio.asgi.application"
AUTH_USER_MODEL = "tenants.User"
LOGIN_URL = "sign-in"
CSRF_FAILURE_VIEW = "studio.refused_forms.csrf_failure"
# The first one hashes; a password that another one has hashed is hashed anew when its person signs in.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
]

# Signing in at a provider of one's own (OpenID Connect). The library speaks with the provider; who may come in is
# decided in tenants.operations.identities, so it makes no accounts, sends no mail and has no pages.
OZ0_OIDC_URL: str = env.str("OZ0_OIDC_URL", default="").rstrip("/")
OZ0_OIDC_NAME: str = env.str("OZ0_OIDC_NAME", default="single sign-on") if OZ0_OIDC_URL else ""
if OZ0_OIDC_URL:
    _provider = urlsplit(OZ0_OIDC_URL)
    if _provider.scheme != "https" and _provider.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise ImproperlyConfigured("OZ0_OIDC_URL must be an https:// address: who you are is told over it")
    if not env.str("OZ0_OIDC_CLIENT", default=""):
        raise ImproperlyConfigured("OZ0_OIDC_URL is set without OZ0_OIDC_CLIENT: the provider gives both")
SOCIALACCOUNT_ADAPTER = "tenants.views.oidc_adapter.Adapter"
SOCIALACCOUNT_STORE_TOKENS = False
ACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "provider",
                "name": OZ0_OIDC_NAME,
                "client_id": env.str("OZ0_OIDC_CLIENT", default=""),
                "secret": env.str("OZ0_OIDC_SECRET", default=""),
                "settings": {"server_url": OZ0_OIDC_URL},
            }
        ],
    }
}

# Mail: smtp+tls://user:password@host:587 or smtp+ssl://…; without one nothing is sent.
OZ0_EMAIL_URL: str = env.str("OZ0_EMAIL_URL", default="")
MAILERS: dict[str, Any] = {"default": {"BACKEND": "django.core.mail.backends.dummy.EmailBackend"}}
if OZ0_EMAIL_URL:
    _mail: dict[str, Any] = dict(env.email_url("OZ0_EMAIL_URL"))
    MAILERS["default"] = {
        "BACKEND": _mail["EMAIL_BACKEND"],
        "OPTIONS": {
            "host": _mail["EMAIL_HOST"],
            "port": _mail["EMAIL_PORT"],
            "username": _mail["EMAIL_HOST_USER"] or "",
            "password": _mail["EMAIL_HOST_PASSWORD"] or "",
            "use_tls": bool(_mail.get("EMAIL_USE_TLS")),
            "use_ssl": bool(_mail.get("EMAIL_USE_SSL")),
            "timeout": 10,  # seconds for each step
        },
    }
DEFAULT_FROM_EMAIL: str = env.str("OZ0_EMAIL_FROM", default="oz0 studio <oz0@localhost>")
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "studio.pages.shell",
            ],
            "builtins": ["django.templatetags.static", "base.tags"],
        },
    }
]


def _database(name: str) -> dict[str, Any]:
    """The connection named by an environment variable holding a `postgres://` address."""
    if not env.str(name, default=""):
        raise ImproperlyConfigured(
            f"{name} is not set: run `oz0 up` here first, or set it to postgres://user:password@host/name"
        )
    found: dict[str, Any] = dict(env.db_url(name))
    if found.get("ENGINE") != "django.db.backends.postgresql":
        raise ImproperlyConfigured(
            f"{name} must be a postgres:// address: oz0 studio keeps its promises with PostgreSQL's own locks"
        )
    return found | {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}


# Migrations run as the owner of the schema, everything else as a role that row-level security binds (MACHINES 7).
DATABASES = {"default": _database("DATABASE_OWNER_URL" if env.bool("OZ0_AS_OWNER", default=False) else "DATABASE_URL")}
REDIS_URL: str = env.str("REDIS_URL", default="redis://127.0.0.1:6379/0")
BROKER_URL: str = env.str("BROKER_URL", default=REDIS_URL)
try:
    OZ0_DRAIN: float = drain_time(env.str("OZ0_DRAIN", default=DRAIN))
except ValueError as error:
    raise ImproperlyConfigured(str(error)) from error
try:
    OZ0_SMTP = smtp_of(OZ0_EMAIL_URL, DEFAULT_FROM_EMAIL)
except ValueError as error:
    raise ImproperlyConfigured(str(error)) from error
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # redis-py's default socket_timeout closes an idle blocking read after five seconds
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None, "socket_connect_timeout": 0.5}]},
    }
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "static/"
STATICFILES_DIRS = [ROOT / "static"]
WHITENOISE_USE_FINDERS = True  # straight from static/ and the packages: no step collects files
# a message's level is one of the tones of static/css/tokens.css
MESSAGE_TAGS = {told.INFO: "stop", told.SUCCESS: "ok", told.WARNING: "wait", told.ERROR: "bad"}
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
# Over https alone, cookies are sent over https alone.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = OZ0_URL.startswith("https://")
if OZ0_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_NAME = "oz0_session"
CSRF_COOKIE_NAME = "oz0_csrf"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
