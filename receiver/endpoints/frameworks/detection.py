"""Detection of the framework whose view was called, and its transaction. None is imported that is not in use."""

import sys
from collections.abc import Sequence
from typing import Any

from hookonce.receiver.endpoints.frameworks.request import Framework
from hookonce.receiver.idempotency.postgresql import Cursor


def framework_of(args: Sequence[object]) -> tuple[Framework, object]:
    """Return whose view was called with these arguments, and its request. Raises: TypeError."""
    if "django.http" in sys.modules:
        from hookonce.receiver.endpoints.frameworks import django_views

        request = django_views.request_of(args)
        if request is not None:
            return django_views, request
    if "flask" in sys.modules:
        from hookonce.receiver.endpoints.frameworks import flask_views

        if flask_views.is_asked():
            return flask_views, flask_views.request
    raise TypeError(
        "an idempotent endpoint was called without a request of Flask or Django; with FastAPI, give its router "
        "route_class=IdempotentRoute, and elsewhere use `with idempotent(...).operation(...)`"
    )


def cursor_of(transaction: Any) -> Cursor:  # noqa: ANN401  any of three libraries
    """Return a cursor of the driver, in the transaction of a connection or session. Raises: TypeError."""
    if transaction is None and "django.db" in sys.modules:
        from hookonce.receiver.endpoints.frameworks import django_views

        return django_views.cursor()  # what `transaction.atomic()` gives
    found = getattr(transaction, "session", transaction)  # SQLAlchemy's Session.begin()
    module = type(found).__module__.partition(".")[0]
    if module == "sqlalchemy":
        connection = found.connection
        found = connection().connection if callable(connection) else connection
    cursor = getattr(found, "cursor", None)
    if cursor is None:
        raise TypeError(
            f"{type(transaction).__name__} is no connection or session of psycopg, SQLAlchemy or Django"
        )
    made: Cursor = cursor()
    return made
