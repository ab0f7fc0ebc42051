"""`hookonce.testing` in a Django project: handlers run as `manage.py hookonce_worker` runs them."""

import os
import re

import pytest

from hookonce.jobs import handlers
from hookonce.testing import Inbox, handled_once
from tests.support.applications import EXAMPLES
from tests.support.page_commands import DOCS
from tests.support.warm_python import WarmPython

DEADLINE = 60
PAGE = (DOCS / "how-to/testing.md").read_text()
[OF_THE_PAGE] = re.findall(r"^```python\n(from shop\.models .*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SET_UP = """
import os, shutil, sys
os.environ["DATABASE_URL"] = "postgresql://127.0.0.1:1/nowhere"
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
sys.path.insert(0, {example!r})
import django
django.setup()
"""
NEEDS = """
import pytest
from django.db import connections, transaction
from shop.models import Payment
import shop.webhooks
from hookonce import GiveUp, on, on_batch
from hookonce.jobs.handlers import HandlerError
from hookonce.testing import crash_at, dead_with, event, handled_once

PAID = ("stripe", "invoice.paid")

def booked():
    return list(Payment.objects.values_list("invoice", flat=True))

def write(event, invoice=None):
    return Payment.objects.create(invoice=invoice or event.event_id, cents=1)
"""
OF_WEBHOOKS = """
@pytest.mark.parametrize("number", range(2))
def test_handlers_of_webhooks_are_found(inbox, number):
    paid = inbox.deliver(*PAID, set={"data.object.id": "in_1"}, times=3)
    handled_once(paid, "shop.webhooks.book")
    assert booked() == ["in_1"]
    assert inbox.execute("SELECT invoice FROM shop_payment") == [("in_1",)]
"""
OF_FAILURES = """
def test_row_of_a_handler_that_raises_is_rolled_back(inbox):
    @on(*PAID, name="fails", attempts=2)
    def fails(event, connection):
        assert connection is connections["default"]
        write(event)
        raise LookupError("no such customer")
    inbox.use(fails)
    paid = inbox.deliver(*PAID)
    assert booked() == []
    inbox.settle()
    assert dead_with(paid, LookupError).attempts == 2
    assert booked() == []
"""
OF_REFUSALS = """
def long(event): ...
def orm(event, session): ...

@pytest.mark.parametrize(("handle", "options", "said"), [
    (long, {"tx": "none"}, "has tx='none'"),
    (orm, {}, "takes an SQLAlchemy session"),
])
def test_what_the_worker_refuses_is_refused(inbox, handle, options, said):
    handler = on(*PAID, name="of the test", **options)(handle)
    inbox.use(handler)
    with pytest.raises(HandlerError, match=said):
        inbox.deliver(*PAID)
    inbox.use(handler, framework=False)  # `hookonce worker` takes it
    inbox.settle()
    assert inbox.execute("SELECT status FROM hookonce.run_states") == [("done",)]
"""
OF_BATCHES = """
def test_rows_of_a_batch_are_committed_with_all_its_runs(inbox):
    sizes = []
    @on_batch(*PAID, name="many")
    def many(events, connection):
        sizes.append(len(events))
        for event in events:
            write(event)
        if "evt_2" in {event.event_id for event in events}:
            raise GiveUp("of nobody", event=[event for event in events if event.event_id == "evt_2"])
    inbox.use(many)
    for number in range(3):
        inbox.deliver(*PAID, event_id=f"evt_{number}", work=False)
    inbox.settle()
    assert (sorted(booked()), sizes) == (["evt_0", "evt_1"], [3, 2])
"""
OF_COROUTINES = """
import asyncio

def test_rows_of_an_async_handler_are_committed_with_its_run_or_not_at_all(inbox):
    @on(*PAID, name="awaits", attempts=2)
    async def awaits(event, connection):
        await Payment.objects.acreate(invoice=event.event_id, cents=1)
        assert await Payment.objects.acount() == 1
        await asyncio.gather(*(Payment.objects.filter(cents=n).aexists() for n in range(3)))
        if event.attempt == 1:
            raise LookupError("once")
    inbox.use(awaits)
    paid = inbox.deliver(*PAID, event_id="evt_1")
    assert booked() == []
    inbox.settle()
    handled_once(paid)
    assert booked() == ["evt_1"]

def test_async_handler_that_takes_too_long_is_cancelled(inbox):
    ended = []
    @on(*PAID, name="slow", attempts=1, timeout=0.3)
    async def slow(event, connection):
        await Payment.objects.acreate(invoice="late", cents=1)
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(True)
    inbox.use(slow)
    dead_with(inbox.deliver(*PAID), "took longer than 0.3 s")
    assert (booked(), ended) == ([], [True])

def test_tasks_that_an_async_handler_leaves_fail_it(inbox):
    @on(*PAID, name="leaves", attempts=1)
    async def leaves(event, connection):
        leaves.task = asyncio.create_task(asyncio.sleep(30))
    inbox.use(leaves)
    dead_with(inbox.deliver(*PAID), "while tasks that it had started were still going on")
"""
OF_CRASHES = """
@pytest.mark.parametrize("failpoint", ["run.claimed", "handler.entered", "handler.returned", "run.committed"])
def test_invoice_is_booked_once_wherever_the_worker_dies(inbox, failpoint):
    inbox.use(shop.webhooks)
    assert booked() == []  # a connection of the test's is open
    with crash_at(inbox, failpoint):
        inbox.deliver(*PAID, event_id="evt_1", set={"data.object.id": "in_1"})
    inbox.settle()
    assert booked() == ["in_1"]
"""
OF_TRANSACTIONS = """
def test_transaction_of_the_test_is_refused(inbox):
    with transaction.atomic(), pytest.raises(RuntimeError, match="the test has begun a transaction"):
        inbox.deliver(*PAID)

@pytest.mark.parametrize("number", range(2))
def test_tx_is_the_connection_of_django(tx, number):
    assert tx is connections["default"]
    assert booked() == []
    shop.webhooks.book(event(*PAID, set={"data.object.id": "in_1"}), tx)
    assert booked() == ["in_1"]

def test_alias_leads_elsewhere_afterwards():
    assert connections["default"].settings_dict["NAME"] == "nowhere"
"""
BLOCKED = """
import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

REAL = BaseDatabaseWrapper.ensure_connection

class Blocker:  # as that of pytest-django
    def block(self):
        def refused(*_):
            raise RuntimeError("Database access not allowed")
        BaseDatabaseWrapper.ensure_connection = refused
    def unblock(self):
        BaseDatabaseWrapper.ensure_connection = REAL
        return self
    def __enter__(self): pass
    def __exit__(self, *_):
        self.block()

class Plugin:
    @staticmethod
    @pytest.fixture(scope="session")
    def django_db_blocker():
        made = Blocker()
        made.block()
        return made

def pytest_configure(config):
    config.pluginmanager.register(Plugin(), "django")
"""
OF_BLOCKS = (
    OF_WEBHOOKS
    + """
def test_other_tests_stay_without_databases(django_db_blocker):
    with pytest.raises(RuntimeError, match="not allowed"):
        booked()
"""
)


@pytest.fixture(scope="module")
def warm():
    """What pytest is forked from."""
    made = WarmPython(
        "pytest", "hookonce.testing.inbox", "hookonce.testing.servers", "hookonce.django.testing"
    )
    yield made
    made.close()


@pytest.mark.parametrize(
    ("tests", "count", "more"),
    [
        pytest.param(
            OF_FAILURES + OF_TRANSACTIONS + OF_REFUSALS + OF_BATCHES + OF_COROUTINES,
            11,
            "",
            id="effects, refusals, batches and async handlers",
        ),
        pytest.param(OF_CRASHES, 4, "", id="crashes"),
        pytest.param(OF_BLOCKS + OF_THE_PAGE, 4, BLOCKED, id="handlers and pytest-django"),
    ],
)
def test_inbox_runs_what_the_worker_of_django_runs(tmp_path, warm, servers, tests, count, more):
    (tmp_path / "conftest.py").write_text(SET_UP.format(example=str(EXAMPLES / "django")) + more)
    (tmp_path / "test_it.py").write_text(NEEDS + tests)

    code, said = run(tmp_path, warm, servers)

    assert code == 0, said
    assert f"{count} passed" in said, said


OF_ANOTHER_ALIAS = """
def test_handler_writes_to_the_alias_that_the_settings_name(tx):
    assert tx is connections["ledger"]
    assert connections["default"].settings_dict["NAME"] == "nowhere"
    assert connections["ledger"].settings_dict["NAME"] != "nowhere"
"""


def test_fixtures_go_by_the_alias_that_the_settings_name(tmp_path, warm, servers):
    named = (
        "import project.settings as given\n"
        'given.DATABASES["ledger"] = dict(given.DATABASES["default"])\n'
        'given.HOOKONCE_DATABASE = "ledger"\n'
    )
    set_up = SET_UP.format(example=str(EXAMPLES / "django")).replace(
        "import django\n", named + "import django\n"
    )
    (tmp_path / "conftest.py").write_text(set_up)
    (tmp_path / "test_it.py").write_text(NEEDS + OF_ANOTHER_ALIAS)

    code, said = run(tmp_path, warm, servers)

    assert code == 0, said


def test_alias_that_the_worker_refuses_is_refused_before_anything_is_made_there(tmp_path, warm, servers):
    lite = 'import project.settings\nproject.settings.DATABASES["default"]["ENGINE"] = "django.db.backends.sqlite3"\n'
    set_up = SET_UP.format(example=str(EXAMPLES / "django")).replace(
        "import django\n", lite + "import django\n"
    )
    (tmp_path / "conftest.py").write_text(set_up)
    (tmp_path / "test_it.py").write_text(NEEDS + OF_FAILURES)

    code, said = run(tmp_path, warm, servers)

    assert code == 1
    assert "DATABASES['default'] is SQLite; expected PostgreSQL, where the ledger lies" in said
    assert {each.name for each in tmp_path.iterdir() if not each.name.startswith("__")} == {
        *("conftest.py", "test_it.py", "said")
    }


def run(place, warm, servers):
    """Run the tests in a folder by pytest on servers that are there; its exit code, and what it said."""
    ours = ("HOOKONCE_", "DATABASE_URL", "REDIS_URL", "PYTEST_", "DJANGO_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environ["HOOKONCE_TEST_DATABASE_URL"] = servers.database_url
    environ["HOOKONCE_TEST_REDIS_URL"] = servers.redis_url
    with (place / "said").open("wb") as said:
        process = warm.start(
            ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"],
            cwd=place,
            env=environ,
            output=said,
        )
    return process.wait(DEADLINE), (place / "said").read_text()


def test_ledger_of_the_tests_lies_in_the_schema_that_is_configured(tmp_path, warm, servers):
    (tmp_path / "hookonce.toml").write_text('[receiver]\nschema = "inbox"\n')
    (tmp_path / "conftest.py").write_text(SET_UP.format(example=str(EXAMPLES / "django")))
    (tmp_path / "test_it.py").write_text(NEEDS + OF_FAILURES)

    code, said = run(tmp_path, warm, servers)

    assert code == 0, said


def test_handlers_that_hookonce_toml_names_are_those_of_every_inbox(
    tmp_path, monkeypatch, database_url, redis_url
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(handlers, "registry", handlers.Registry())
    (tmp_path / "hookonce.toml").write_text('[receiver]\nhandlers = ["named_by_the_file"]\n')
    (tmp_path / "named_by_the_file.py").write_text(
        "from hookonce import on\n\n\n@on('stripe', 'invoice.paid')\ndef look(event, tx): ...\n"
    )

    for number in range(2):
        made = Inbox(database_url, redis_url)
        try:
            handled_once(made.deliver("stripe", "invoice.paid", event_id=f"evt_{number}"))
        finally:
            made.close()
