"""`hookonce.testing` with a Flask application: handlers run as `flask hookonce worker` runs them."""

import re

import pytest

from tests.frameworks.test_flask_home import MODELS
from tests.support.page_commands import DOCS
from tests.support.warm_python import WarmPython
from tests.testing.test_django_projects import run

APP = """
import os

from flask import Flask
from models import db

import hookonce.flask


def create_app():
    app = Flask(__name__)
    app.config["SQLALCHEMY_DATABASE_URI"] = "postgresql+psycopg://127.0.0.1:1/nowhere"
    app.config["CURRENCY"] = "EUR"
    db.init_app(app)
    return app
"""
HANDLERS = """
from flask import current_app
from models import Payment, db

from hookonce import on


@on("stripe", "invoice.paid", attempts=2)
def book(event, tx):
    db.session.add(Payment(invoice=event.event_id, currency=current_app.config["CURRENCY"]))
    db.session.commit()
"""
PAGE = (DOCS / "how-to/testing.md").read_text()
CONFTEST, TEST_OF_THE_PAGE = re.findall(
    r"^```python\n((?:import pytest  # conftest|from models import).*?)^```", PAGE, re.DOTALL | re.MULTILINE
)
TESTS = """
import pytest
from models import Payment, db

import handlers
from hookonce import GiveUp, on
from hookonce.testing import crash_at, dead_with, event, handled_once, ignored

PAID = ("stripe", "invoice.paid")


def booked():
    return sorted(db.session.scalars(db.select(Payment.invoice)))


def failing(attempts, write):
    @on(*PAID, name="fails", attempts=attempts)
    def fails(event, tx):
        write(event)
        if event.attempt < 2 or attempts == 1:
            raise LookupError("no such customer")
    return fails


def add(event):
    db.session.add(Payment(invoice=event.event_id, currency="EUR"))


def test_invoice_that_comes_three_times_is_booked_once(app, inbox):
    handled_once(inbox.deliver(*PAID, event_id="evt_1", times=3))
    assert booked() == ["evt_1"]


def test_each_test_begins_with_nothing(app, inbox):
    assert booked() == []


def test_handler_is_a_function(app, tx):
    handlers.book(event(*PAID, event_id="evt_1"), tx)
    assert booked() == ["evt_1"]


def test_rows_of_the_function_are_gone_afterwards(app, tx):
    assert booked() == []


@pytest.mark.parametrize("ends", ["nothing", "flush", "commit", "remove", "nested"])
def test_rows_of_a_handler_that_raises_are_gone(app, inbox, ends):
    def write(event):
        if ends == "nested":
            with app.app_context():
                add(event)
                db.session.commit()
            return
        add(event)
        if ends == "remove":
            db.session.remove()
            add(event)
            db.session.commit()
        elif ends != "nothing":
            getattr(db.session, ends)()

    inbox.use(failing(1, write))
    dead_with(inbox.deliver(*PAID), LookupError)
    assert booked() == []


def test_session_is_another_transaction_without_the_worker_of_flask(app, inbox):
    def write(event):
        add(event)
        db.session.commit()

    inbox.use(failing(1, write), framework=False)
    dead_with(inbox.deliver(*PAID, event_id="evt_1"), LookupError)
    assert booked() == ["evt_1"]


def test_second_attempt_books_once(app, inbox):
    def write(event):
        add(event)
        db.session.commit()

    inbox.use(failing(2, write))
    paid = inbox.deliver(*PAID, event_id="evt_1")
    assert booked() == []
    inbox.settle()
    handled_once(paid)
    assert booked() == ["evt_1"]


def test_rollback_takes_back_what_was_not_committed_and_no_more(app, inbox):
    @on(*PAID, name="half")
    def half(event, tx):
        add(event)
        db.session.commit()
        add(event)
        db.session.rollback()

    inbox.use(half)
    handled_once(inbox.deliver(*PAID, event_id="evt_1"))
    assert booked() == ["evt_1"]


def test_row_that_the_test_has_committed_is_seen_by_the_handler(app, inbox):
    db.session.add(Payment(invoice="before", currency="USD"))
    db.session.commit()
    seen = []

    @on(*PAID, name="looks")
    def looks(event, tx):
        seen.append(booked())

    inbox.use(looks)
    inbox.deliver(*PAID)
    assert seen == [["before"]]


def test_worker_that_dies_books_once(app, inbox):
    inbox.use(handlers)
    with crash_at(inbox, "handler.returned"):
        inbox.deliver(*PAID, event_id="evt_1")
    assert booked() == []
    inbox.settle()
    assert booked() == ["evt_1"]


def test_forged_invoice_is_refused(app, inbox):
    assert inbox.deliver(*PAID, forge=True).status == 401
    assert booked() == []


def test_session_of_the_test_leads_elsewhere_afterwards(app):
    assert db.engine.url.database == "nowhere"
"""


@pytest.fixture(scope="module")
def warm():
    """What pytest is forked from."""
    made = WarmPython("pytest", "hookonce.testing.inbox", "hookonce.testing.servers", "flask_sqlalchemy")
    yield made
    made.close()


def test_inbox_runs_what_the_worker_of_flask_runs(tmp_path, warm, servers):
    for name, text in (
        ("app.py", APP),
        ("models.py", MODELS),
        ("handlers.py", HANDLERS),
        ("conftest.py", CONFTEST),
        ("test_it.py", TESTS),
        ("test_page.py", TEST_OF_THE_PAGE),
        ("hookonce.toml", '[receiver]\nhandlers = ["handlers"]\n'),
    ):
        (tmp_path / name).write_text(text)

    code, said = run(tmp_path, warm, servers)

    assert code == 0, said
    assert "17 passed" in said, said
