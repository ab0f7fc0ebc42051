"""The application that INSTALLED_APPS names."""

from django.apps import AppConfig


class HookonceConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """The inbox in a project: `migrate` makes the ledger's tables, `check` looks at what it needs."""

    name = "hookonce.django"
    label = "hookonce"
    verbose_name = "hookonce"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from hookonce.django import checks  # noqa: F401, PLC0415  whose functions register themselves
