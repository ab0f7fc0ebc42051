"""The operation by which `manage.py migrate` makes and upgrades the ledger, in a schema of its own.

It does what `hookonce db upgrade` does, where that is a matter of moments. A ledger whose events would have to be
copied is left as it is, and the command named.
"""

from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

from hookonce.django.ledger import is_of_tests, ledger_alias, require_shared, url_of
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.server_urls import with_schema
from hookonce.receiver.config.servers import NO_POSTGRESQL, ledger_schema, ledger_url
from hookonce.receiver.ledger.database import migrate, upgrade_plan
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.database.migrate import LedgerLocked

_COMMAND = "run `hookonce db upgrade`, then migrate again"


class UpgradeLedger(Operation):  # type: ignore[misc]  # Django has no types
    """Bring the ledger to the tables of a revision, or of a later one: to those that the installed version needs.

    It has a transaction of its own, on a connection of its own, so a migration with it has `atomic = False`.
    """

    reduces_to_sql = False
    reversible = False  # dropping the ledger loses events

    def __init__(self, revision: str) -> None:
        self.revision = revision

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
        return f"Makes or upgrades hookonce's ledger, to revision {self.revision} at least"

    @property
    def migration_name_fragment(self) -> str:
        """A part of a migration's name."""
        return f"ledger_{self.revision}"


def _upgrade_in(database: BaseDatabaseWrapper) -> None:
    """Make or upgrade the ledger in a database. Raises `ConfigError` where it is configured to lie elsewhere."""
    url = with_schema(url_of(database), ledger_schema())
    plan = upgrade_plan.plan(url)
    if plan.revision == plan.reached and not plan.steps:
        return
    if plan.takes_long:
        steps = "; ".join(f"{step.does} (locks {step.locks})" for step in plan.steps)
        raise CommandError(
            f"the ledger is at revision {plan.revision}, and its upgrade takes time: {steps}. Now {_COMMAND}"
        )
    if not is_of_tests(database):
        _require_configured(database)
    try:
        migrate.upgrade(url)
    except Exception as error:
        cause = getattr(error, "orig", error)  # of what SQLAlchemy wraps
        if not isinstance(cause, psycopg.errors.InsufficientPrivilege):
            raise
        why = str(cause).splitlines()[0]
        raise CommandError(
            f"the ledger can't be made by this role ({why}): have one that may {_COMMAND}"
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
