"""Django's registration of the `jobs` app."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """What Django knows of the `jobs` app."""

    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"
