"""`manage.py test`: the ledger in the test database, and the test case that runs what the worker runs."""

import re

import pytest

from tests.support.applications import Project
from tests.support.page_commands import DOCS

PAGE = (DOCS / "how-to/testing.md").read_text()
[OF_THE_PAGE] = re.findall(
    r"^```python\n(from hookonce\.testing\.django .*?)^```", PAGE, re.DOTALL | re.MULTILINE
)
TESTS = """
from django.db import connection, transaction
from django.test import Client, TestCase, TransactionTestCase

from hookonce import on
from hookonce.testing.django import InboxTestCase
from hookonce.testing import crash_at, dead_with, event, handled_once, ignored
from shop import webhooks
from shop.models import Payment

PAID = ("stripe", "invoice.paid")


class Ledger(TestCase):
    def test_is_in_the_test_database(self):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM hookonce.events")
            self.assertEqual(cursor.fetchone(), (0,))

    def test_handler_is_a_function(self):
        webhooks.book(event(*PAID, set={"data.object.id": "in_1", "data.object.amount_paid": 5}), connection)
        self.assertEqual(Payment.objects.get().cents, 5)


class Invoices(InboxTestCase):
    def test_invoice_that_comes_three_times_is_booked_once(self):
        handled_once(self.inbox.deliver(*PAID, times=3), "shop.webhooks.book")
        self.assertEqual(Payment.objects.count(), 1)

    def test_each_test_begins_with_nothing(self):
        self.assertEqual(Payment.objects.count(), 0)
        self.assertEqual(self.inbox.execute("SELECT count(*) FROM hookonce.events"), [(0,)])

    def test_forged_invoice_is_refused(self):
        self.assertEqual(self.inbox.deliver(*PAID, forge=True).status, 401)
        self.assertEqual(Payment.objects.count(), 0)

    def test_type_without_handler_is_ignored(self):
        ignored(self.inbox.deliver("stripe", "payout.paid"))

    def test_rows_of_a_handler_that_raises_are_gone(self):
        @on(*PAID, name="fails", attempts=2)
        def fails(event, connection):
            Payment.objects.create(invoice="x", cents=1)
            raise LookupError("no such customer")

        self.inbox.use(fails)
        paid = self.inbox.deliver(*PAID)
        self.assertEqual(Payment.objects.count(), 0)
        self.inbox.settle()
        self.assertEqual(dead_with(paid, LookupError).attempts, 2)
        self.assertEqual(Payment.objects.count(), 0)

    def test_on_commit_is_called_after_the_commit_and_not_after_a_rollback(self):
        called = []

        @on(*PAID, name="hooked", attempts=1)
        def hooked(event, connection):
            transaction.on_commit(lambda: called.append(event.event_id))
            if event.event_id == "evt_bad":
                raise LookupError

        self.inbox.use(hooked)
        self.inbox.deliver(*PAID, event_id="evt_bad")
        self.inbox.deliver(*PAID, event_id="evt_good")
        self.assertEqual(called, ["evt_good"])

    def test_worker_that_dies_books_once(self):
        with crash_at(self.inbox, "handler.returned"):
            self.inbox.deliver(*PAID, event_id="evt_1")
        self.inbox.settle()
        self.assertEqual(Payment.objects.count(), 1)

    def test_async_handler_awaits_the_orm(self):
        @on(*PAID, name="awaits", attempts=1)
        async def awaits(event, connection):
            await Payment.objects.acreate(invoice=event.event_id, cents=1)
            if event.event_id == "evt_bad":
                raise LookupError

        self.inbox.use(awaits)
        self.inbox.deliver(*PAID, event_id="evt_bad")
        self.inbox.deliver(*PAID, event_id="evt_good")
        self.assertEqual([each.invoice for each in Payment.objects.all()], ["evt_good"])


class View(TransactionTestCase):
    def test_post_that_is_no_event_is_refused(self):
        self.assertEqual(Client().post("/hooks/stripe", b"{}", content_type="application/json").status_code, 401)
"""


@pytest.fixture
def project(tmp_path, servers, database_url, redis_url):
    made = Project("django", tmp_path, database_url, redis_url)
    made.environ |= {
        "HOOKONCE_TEST_DATABASE_URL": servers.database_url,
        "HOOKONCE_TEST_REDIS_URL": servers.redis_url,
    }
    (made.directory / "shop" / "tests.py").write_text(TESTS)
    (made.directory / "shop" / "test_page.py").write_text(OF_THE_PAGE)
    return made


@pytest.mark.parametrize("options", [(), ("--parallel", "2")], ids=["one process", "two"])
def test_tests_of_a_project_run_what_production_runs(project, options):
    done = project.run("manage.py", "test", *options)

    assert "Ran 12 tests" in done.stderr
    assert "\nOK\n" in done.stderr
