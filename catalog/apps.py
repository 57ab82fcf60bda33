"""Django's registration of the `catalog` app."""

from django.apps import AppConfig


class CatalogConfig(AppConfig):
    """What Django knows of the `catalog` app."""

    name = "catalog"
    default_auto_field = "django.db.models.BigAutoField"
