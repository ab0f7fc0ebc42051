"""The operation by which `manage.py migrate` makes and upgrades the ledger, in a schema of its own.

It does what `hookonce db upgrade` does. Django records the names of migrations only; the revision is in the ledger,
and is compared at each `migrate`.
"""

import os
from contextlib import suppress
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

from hookonce.django.ledger import is_of_tests, ledger_alias, require_shared, url_of
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.server_urls import with_schema
from hookonce.receiver.config.servers import NO_POSTGRESQL, ledger_schema, ledger_url
from hookonce.receiver.ledger.database import migrate, schema_version
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.database.migrate import LedgerLocked
from hookonce.receiver.ledger.database.schema_version import UnreleasedLedger


class UpgradeLedger(Operation):  # type: ignore[misc]  # Django has no types
    """Bring the ledger to the tables that the installed version needs.

    It has a transaction of its own, on a connection of its own, so a migration with it has `atomic = False`.
    """

    reduces_to_sql = False
    reversible = False  # dropping the ledger loses events

    def state_forwards(self, app_label: str, state: Any) -> None:  # noqa: ANN401  Django's
        """Change nothing: the ledger's tables are no models of Django's."""

    def database_forwards(
        self,
        app_label: str,  # noqa: ARG002  Django's
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,  # noqa: ANN401, ARG002
        to_state: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Upgrade the ledger in the database of HOOKONCE_DATABASE; elsewhere there is none.

        Raises `CommandError`, a line that says what to do.
        """
        database = schema_editor.connection
        if schema_editor.collect_sql or database.alias != ledger_alias() or database.vendor != "postgresql":
            return
        try:
            _upgrade_in(database)
        except ConfigError as error:
            raise CommandError("; ".join(error.mistakes)) from None
        except (LedgerLocked, LedgerUnavailable) as error:
            raise CommandError(str(error)) from None

    def describe(self) -> str:
        """Say what it does."""
        return "Makes or upgrades hookonce's ledger"

    @property
    def migration_name_fragment(self) -> str:
        """A part of a migration's name."""
        return "ledger"


def require_released(using: str, **_: object) -> None:
    """Refuse to migrate beside a ledger of an unreleased version, also where Django has nothing to apply."""
    if using == ledger_alias() and connections[using].vendor == "postgresql":
        with suppress(ConfigError, LedgerUnavailable, psycopg.Error):  # the operation says so
            revision_in(connections[using])


def revision_in(database: BaseDatabaseWrapper) -> str | None:
    """Return the revision of the ledger in a database, None without one.

    Raises `CommandError` for a ledger of an unreleased version; `LedgerUnavailable`, `ConfigError`.
    """
    try:
        return migrate.current(_url_in(database))
    except UnreleasedLedger as error:
        raise CommandError(str(error), returncode=os.EX_CONFIG) from None


def _url_in(database: BaseDatabaseWrapper) -> str:
    return with_schema(url_of(database), ledger_schema())


def _upgrade_in(database: BaseDatabaseWrapper) -> None:
    """Make or upgrade the ledger in a database. Raises `ConfigError` where it is configured to lie elsewhere."""
    revision = revision_in(database)
    if revision and not schema_version.is_behind(revision):
        return
    if not is_of_tests(database):
        _require_configured(database)
    try:
        migrate.upgrade(_url_in(database))
    except Exception as error:
        cause = getattr(error, "orig", error)  # of what SQLAlchemy wraps
        if not isinstance(cause, psycopg.errors.InsufficientPrivilege):
            raise
        why = str(cause).splitlines()[0]
        raise CommandError(
            f"the ledger can't be made by this role ({why}): have one that may run `hookonce db upgrade`, then migrate "
            "again"
        ) from None


def _require_configured(database: BaseDatabaseWrapper) -> None:
    """Raise `ConfigError` where the configuration leads to another database than the alias."""
    try:
        url = ledger_url()
    except ConfigError as error:
        if error.mistakes != [NO_POSTGRESQL]:
            raise
    else:
        require_shared(database.alias, url, asks_for_rights=False)
