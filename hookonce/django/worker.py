"""Django's worker: the modules it finds handlers in, the handlers it refuses, and what their transactions are.

`python manage.py hookonce_worker` works by it, and so do tests (`hookonce.testing`).
"""

from collections.abc import Iterable
from functools import partial

from django.apps import apps
from django.utils.module_loading import autodiscover_modules, module_has_submodule

from hookonce.django.coroutines import DjangoEventLoop
from hookonce.jobs.attempts.attempt import MakeTransactions
from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.jobs.handlers import Handler, HandlerError
from hookonce.receiver.config.server_urls import schema_of

WEBHOOKS = "webhooks"
"""The module of an installed application that has its handlers."""


def webhook_modules() -> list[str]:
    """Return the names of these modules, which need not be imported yet."""
    return [
        f"{application.name}.{WEBHOOKS}"
        for application in apps.get_app_configs()
        if module_has_submodule(application.module, WEBHOOKS)
    ]


def import_webhooks() -> None:
    """Import the handlers of every installed application."""
    autodiscover_modules(WEBHOOKS)


def transactions_on(alias: str, database_url: str) -> MakeTransactions:
    """Return what has handlers write on the connection of an alias, which leads to the ledger at that URL."""
    return partial(DjangoTransactions, alias=alias, place=schema_of(database_url), event_loop=DjangoEventLoop)


def require_fitting(handlers: Iterable[Handler]) -> None:
    """Raise `HandlerError` for handlers that want a session of SQLAlchemy's, or no transaction."""
    for handler in handlers:
        if handler.is_long:
            raise HandlerError(
                f"handler '{handler.name}' has tx='none', but Django's worker gives each handler a transaction of "
                "Django's; have `hookonce worker` run this one, from [receiver] handlers of a configuration of its own"
            )
        if handler.signature.takes_session:
            raise HandlerError(
                f"handler '{handler.name}' takes an SQLAlchemy session; in Django a handler is a function of (event, "
                "connection), and models need no session"
            )
