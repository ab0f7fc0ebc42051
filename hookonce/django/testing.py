"""Django in tests of `hookonce.testing`: an alias of DATABASES that leads to a database of the tests for a while.

Both the handlers' writes and the test's own models go there, and what the alias led to before is not touched.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from hookonce.django.ledger import parts_of, require_shared
from hookonce.django.worker import import_webhooks, require_fitting, transactions_on
from hookonce.jobs.attempts.attempt import MakeTransactions
from hookonce.jobs.handlers import Handler
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.server_urls import with_schema
from hookonce.receiver.config.servers import ledger_schema

_NOWHERE = {"NAME": "", "USER": "", "PASSWORD": "", "HOST": "", "PORT": ""}
_OF_ITS_SERVER = {"pool", "service", "passfile"}
"""Options that lead to the server of before: pools are kept by alias."""


class DjangoWorker:
    """Django's worker for an inbox of the tests, as long as an alias leads to the inbox's database."""

    def __init__(self, alias: str, database_url: str) -> None:
        self._alias = alias
        self.transactions: MakeTransactions = transactions_on(alias, database_url)
        """Transactions that handlers write in, as in `manage.py hookonce_worker`."""
        import_webhooks()

    @staticmethod
    def require_fitting(handlers: Iterable[Handler]) -> None:
        """Raise `HandlerError` for a handler that Django's worker refuses."""
        require_fitting(handlers)

    def require_no_transaction(self) -> None:
        """Raise RuntimeError where the test has begun a transaction: a handler's is durable, and commits."""
        if connections[self._alias].in_atomic_block:
            raise RuntimeError(
                f"the test has begun a transaction on DATABASES['{self._alias}'], where handlers begin and commit "
                "their own; deliver and work outside of atomic(), and without pytest-django's django_db"
            )

    @staticmethod
    def close() -> None:
        """Close the connections of Django's that no transaction is open on."""
        for each in connections.all(initialized_only=True):
            if not each.in_atomic_block:
                each.close()


@contextmanager
def worker(alias: str, database_url: str) -> Iterator[DjangoWorker]:
    """Have Django's worker run handlers in a database as long as the block lasts. Raises `ConfigError`."""
    with _leading(alias, database_url):
        yield DjangoWorker(alias, with_schema(database_url, ledger_schema()))


def migrate(alias: str, database_url: str) -> None:
    """Make the tables of all models in a database, as Django's own tests do."""
    with _leading(alias, database_url):
        call_command("migrate", database=alias, run_syncdb=True, interactive=False, verbosity=0)


@contextmanager
def rolled_back(alias: str, database_url: str) -> Iterator[BaseDatabaseWrapper]:
    """Give Django's connection as handlers get it, in a transaction that is rolled back."""
    with _leading(alias, database_url) as database, transaction.atomic(using=alias, durable=True):
        try:
            yield database
        finally:
            transaction.set_rollback(True, using=alias)


@contextmanager
def _leading(alias: str, url: str) -> Iterator[BaseDatabaseWrapper]:
    """Have an alias lead to another database, by a connection of its own; this thread's comes back afterwards.

    Raises `ConfigError` where Django's worker would refuse the alias.
    """
    if alias not in connections:
        raise ConfigError([f"DATABASES has no '{alias}'; it has {', '.join(sorted(connections))}"])
    before = connections.settings[alias]
    was = next((each for each in connections.all(initialized_only=True) if each.alias == alias), None)
    entry, rest = parts_of(url)
    kept = {name: value for name, value in before["OPTIONS"].items() if name not in _OF_ITS_SERVER}
    connections.settings[alias] = {**before, **_NOWHERE, **entry, "OPTIONS": {**kept, **rest}}
    connections[alias] = made = connections.create_connection(alias)
    try:
        require_shared(alias, with_schema(url, ledger_schema()))
        yield made
    finally:
        connections[alias].close()
        connections.settings[alias] = before
        if was is None:
            del connections[alias]
        else:
            connections[alias] = was
