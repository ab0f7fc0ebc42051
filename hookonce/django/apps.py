"""The application that INSTALLED_APPS names."""

from django.apps import AppConfig


class HookonceConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """It has no models: its tables are the ledger's, and `hookonce db upgrade` makes them."""

    name = "hookonce.django"
    label = "hookonce"
    verbose_name = "hookonce"
