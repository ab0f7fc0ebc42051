"""Tests of handlers for `manage.py test`: a test case with an inbox (docs/how-to/testing.md).

from hookonce.testing.django import InboxTestCase
from hookonce.testing import handled_once

class Invoices(InboxTestCase):
    def test_invoice_that_comes_three_times_is_booked_once(self):
        handled_once(self.inbox.deliver("stripe", "invoice.paid", times=3))
        self.assertEqual(Payment.objects.count(), 1)
"""

import atexit
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import ClassVar

from django.db import connections
from django.test import SimpleTestCase

from hookonce.django import testing
from hookonce.django.ledger import is_of_tests, ledger_alias, url_of
from hookonce.receiver.config.embedded_servers import Servers
from hookonce.testing import servers
from hookonce.testing.inbox import Inbox
from hookonce.testing.servers import Databases

_ADMINISTERED_FROM = "postgres"
"""The database from which Django, too, makes others."""


class InboxTestCase(SimpleTestCase):  # type: ignore[misc]  # Django has no types
    """A test with a real inbox, `self.inbox`, as `manage.py hookonce_worker` runs its handlers.

    Each test has a copy of the test database, tables and rows of migrations included, and the alias leads to the copy
    meanwhile: models read what handlers wrote. Nothing is wrapped in a transaction, since handlers commit.
    """

    databases: ClassVar[str] = "__all__"
    ledger_database: ClassVar[str] = ""
    """The alias of the ledger's database; HOOKONCE_DATABASE says it, or it is `default`."""
    inbox: Inbox

    def setUp(self) -> None:
        """Make the inbox."""
        super().setUp()
        self.inbox = self.enterContext(_inbox(self.ledger_database or ledger_alias()))


@contextmanager
def _inbox(alias: str) -> Iterator[Inbox]:
    connections[alias].close()  # a database that somebody is connected to is not copied
    made = _databases(alias, url_of(connections[alias]) if is_of_tests(connections[alias]) else "")
    with (
        made.copy() as database_url,
        made.redis() as redis_url,
        testing.worker(alias, database_url) as worker,
    ):
        inbox = Inbox(database_url, redis_url, worker)
        try:
            yield inbox
        finally:
            inbox.close()


@cache
def _databases(alias: str, made_by_django: str) -> Databases:
    """Return what to copy: the test runner's database, or one of our own where another runner has made none."""
    stack = ExitStack()
    atexit.register(stack.close)
    if made_by_django:
        given = stack.enter_context(servers.given_or_started())
        administered = servers.of_database(made_by_django, _ADMINISTERED_FROM)
        return Databases(Servers(administered, given.redis_url), made_by_django)
    own = stack.enter_context(servers.databases())
    testing.migrate(alias, own.template)
    return own
