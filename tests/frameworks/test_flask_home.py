"""`flask hookonce worker`: handlers inside the application, with `db.session` in the transaction of the run."""

import pytest

from tests.support.applications import SERVERS, Project, end, paid
from tests.support.waiting import until

DEADLINE = 60
ENDED = "SELECT count(*) FROM hookonce.run_states WHERE status IN ('done', 'dead')"
APP = """
import os

from flask import Flask
from models import db

import hookonce.flask

app = Flask(__name__)
app.config["SQLALCHEMY_DATABASE_URI"] = os.environ["MODELS_URL"].replace("postgresql:", "postgresql+psycopg:", 1)
app.config["CURRENCY"] = "EUR"
db.init_app(app)
hookonce.flask.mount(app)


@app.cli.command("create-tables")
def create_tables():
    db.create_all()
"""
MODELS = """
from flask_sqlalchemy import SQLAlchemy

db = SQLAlchemy()


class Payment(db.Model):
    __tablename__ = "payments"
    id = db.mapped_column(db.Integer, primary_key=True)
    invoice = db.mapped_column(db.String)
    currency = db.mapped_column(db.String)
"""
HANDLERS = """
import logging

from flask import current_app
from models import Payment, db

from hookonce import on


@on("stripe", "invoice.paid", attempts=1)
def book(event, tx):
    logging.getLogger(__name__).info("booking")
    db.session.add(Payment(invoice=event.event_id, currency=current_app.config["CURRENCY"]))
    if event.event_id == "evt_1":
        db.session.commit()
        raise LookupError("no such customer")
    if event.event_id == "evt_2":
        return
    if event.event_id == "evt_3":
        db.session.rollback()
        db.session.add(Payment(invoice="again", currency="USD"))
    db.session.commit()
    assert db.session.scalar(db.select(db.func.count()).select_from(Payment)) >= 1
"""


@pytest.fixture
def project(tmp_path, database_url, redis_url):
    made = Project("flask", tmp_path, database_url, redis_url)
    made.environ["MODELS_URL"] = database_url
    for name, text in (("app.py", APP), ("models.py", MODELS), ("webhooks.py", HANDLERS)):
        (made.directory / name).write_text(text)
    made.run("-m", "flask", "--app", "app", "create-tables", cold=True)
    return made


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="one slot", marks=pytest.mark.long),
        pytest.param(("--concurrency", "3"), id="three slots"),
    ],
)
def test_session_of_the_application_is_committed_with_the_run_or_not_at_all(project, options):
    with project.serving(SERVERS["flask under gunicorn gthread"][1]) as served:
        for number in range(5):
            assert served.deliver(paid(number)).status == 200

    worker = project.start("-m", "flask", "--app", "app", "hookonce", "worker", *options, cold=True)
    until(
        lambda: project.query(ENDED)[0][0],
        5,
        seconds=DEADLINE,
        process=worker,
    )
    end(worker)

    statuses = project.query("SELECT status, count(*) FROM hookonce.run_states GROUP BY 1 ORDER BY 1")
    assert statuses == [("dead", 1), ("done", 4)]
    booked = project.query("SELECT invoice, currency FROM payments ORDER BY 1")
    assert booked == [("again", "USD"), ("evt_0", "EUR"), ("evt_2", "EUR"), ("evt_4", "EUR")]
    assert project.query("SELECT count(*) FROM hookonce.run_logs") == [(5,)]


def test_models_of_another_database_are_refused(project, empty_database):
    project.environ["MODELS_URL"] = empty_database

    done = project.run(
        *("-m", "flask", "--app", "app", "hookonce", "worker", "--alone"), cold=True, check=False
    )

    assert done.returncode == 78
    assert "SQLALCHEMY_DATABASE_URI leads to the database" in done.stderr
    assert "Traceback" not in done.stderr


def test_commands_are_those_of_hookonce(project):
    done = project.run("-m", "flask", "--app", "app", "hookonce", "events", "list", cold=True)

    assert "no event yet" in (done.stdout + done.stderr).lower()
