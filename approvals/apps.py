"""Django's registration of the `approvals` app."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """What Django knows of the `approvals` app."""

    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"
