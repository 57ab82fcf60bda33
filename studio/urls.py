"""Where each address goes. One line an address; the views live in their apps."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
