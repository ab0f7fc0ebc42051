"""The handlers of a soak in Django's worker, by the same names: those of the stories, and those of other kinds.

The latter were written for SQLAlchemy's connection and are given one that takes the same statements. There is none for
long work: Django's worker takes no handler without a transaction.
"""

import re
from dataclasses import replace

from hookonce.jobs.handlers import registry
from tests.support.stories import (
    django_handlers,  # noqa: F401  which registers them
    hurrying,
    other_handlers,  # noqa: F401  same
)
from tests.support.stories.outside import OTHER_PLANS

OTHERS = {plan.handler for plan in OTHER_PLANS}
NAMED = re.compile(r"(?<!:):(\w+)")


class Given:
    """Django's connection, for handlers of SQLAlchemy's."""

    def __init__(self, connection):
        self._connection = connection

    def execute(self, statement, values):
        with self._connection.cursor() as cursor:
            cursor.execute(NAMED.sub(r"%(\1)s", str(statement)), values)

    def scalar(self, statement, values):
        with self._connection.cursor() as cursor:
            cursor.execute(NAMED.sub(r"%(\1)s", str(statement)), values)
            return cursor.fetchone()[0]


def in_django(handler):
    if handler.name not in OTHERS:
        return handler
    function = handler.function

    def handle(given, connection):
        return function(given, Given(connection))

    return replace(handler, function=handle)


registry.keep([in_django(handler) for handler in registry if not handler.is_long])
hurrying.hurry()
