"""Django's registration of the `budgets` app."""

from django.apps import AppConfig


class BudgetsConfig(AppConfig):
    """What Django knows of the `budgets` app."""

    name = "budgets"
    default_auto_field = "django.db.models.BigAutoField"
