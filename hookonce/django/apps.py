"""The application that INSTALLED_APPS names."""

from django.apps import AppConfig
from django.db.models.signals import pre_migrate


class HookonceConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """The inbox in a project: `migrate` makes the ledger's tables, `check` looks at what it needs."""

    name = "hookonce.django"
    label = "hookonce"
    verbose_name = "hookonce"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, and what looks at the ledger before it is migrated."""
        from hookonce.django import checks  # noqa: F401, PLC0415  whose functions register themselves
        from hookonce.django.ledger_migration import require_released  # noqa: PLC0415  Django is ready only now

        pre_migrate.connect(require_released, sender=self)
