"""Django's connection under a role that has no right on any table of the ledger."""

import re
import sys
import uuid

import psycopg
import pytest
from django.db import DatabaseError, ProgrammingError, connection, transaction
from psycopg import sql

from hookonce.django import ledger
from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger.database import roles
from hookonce.receiver.ledger.database.roles import Task
from hookonce.receiver.ledger.queries import event_details
from tests.jobs.test_batches import on_batches
from tests.support.django_project import entry, lead
from tests.support.inbox import inbox as plain_inbox
from tests.support.kept_lines import keeping_lines

__all__ = ["entry", "plain_inbox"]

NOT_A_HANDLERS = (
    "SELECT FROM hookonce.audit",
    "SELECT FROM hookonce.api_tokens",
    "DELETE FROM hookonce.queue",
    "UPDATE hookonce.queue SET waits = NULL",
    "UPDATE hookonce.runs SET status = 'done'",
    "SELECT FROM hookonce.run_states",
)


@pytest.fixture
def owner(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def role(plain_inbox, entry, owner, administer):
    """A role without rights, as which Django works."""
    name = f"shop_{uuid.uuid4().hex[:8]}"
    administer(("CREATE ROLE {}", name))
    owner.execute(sql.SQL("GRANT SELECT, INSERT ON effects TO {}").format(sql.Identifier(name)))
    lead("default", entry | {"OPTIONS": entry["OPTIONS"] | {"options": f"-c role={name}"}})
    plain_inbox.transactions = DjangoTransactions
    yield name
    connection.close()
    owner.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
    administer(("DROP ROLE {}", name))


@pytest.fixture
def inbox(plain_inbox, role, owner):
    roles.apply(owner, {Task.DJANGO: role})
    return plain_inbox


def write(event):
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effects (event) VALUES (%s)", [event.event_id])


def lines_of(inbox, event):
    found = event_details.detail(inbox.connection, event, inbox.settings.keyring).with_content()
    return [line.text for log in found.logs for line in log.lines]


def test_run_ends_with_its_writes(inbox):
    def credit(event, connection):
        write(event)
        sys.stdout.write(f"credited {event.event_id}\n")
        return {"by": connection.alias}

    inbox.on(credit)
    inbox.deliver("a", "b")
    inbox.deliver("c", keep_body=False)

    with keeping_lines():
        while inbox.work():
            pass

    assert inbox.effects() == ["a", "b", "c"]
    assert {row[2] for row in inbox.runs()} == {"done"}
    assert inbox.rows("SELECT count(*) FROM hookonce.guards") == [(0,)]
    assert inbox.rows("SELECT count(*) FROM hookonce.bodies") == [(2,)]
    assert [lines_of(inbox, event) for event in (1, 2, 3)] == [["credited a"], ["credited b"], []]


def test_handler_finds_no_number_of_the_lines_before_it_in_its_session(inbox):
    said = []

    def tell(event, connection):
        sys.stdout.write(f"credited {event.event_id}\n")
        with pytest.raises(DatabaseError) as refused, transaction.atomic():
            connection.cursor().execute("SELECT lastval()")
        said.append(str(refused.value).strip())

    inbox.on(tell)
    inbox.deliver("a", "b")

    with keeping_lines():
        while inbox.work():
            pass

    assert said == ["lastval is not yet defined in this session"] * 2


@pytest.mark.parametrize("statement", NOT_A_HANDLERS)
def test_handler_can_not_touch_what_is_not_its_own(inbox, statement):
    def meddle(event, connection):
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            connection.cursor().execute(statement)
        write(event)

    inbox.on(meddle)
    inbox.deliver("a")

    inbox.work()

    assert [row[2] for row in inbox.runs()] == ["done"]
    assert inbox.effects() == ["a"]


def test_writes_are_rolled_back_when_the_lease_was_lost(inbox):
    def slow(event, connection):
        write(event)
        inbox.rows("UPDATE hookonce.queue SET token = gen_random_uuid() RETURNING 1")

    inbox.on(slow)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == []
    assert [row[2] for row in inbox.runs()] == ["running"]


def test_failed_attempt_is_kept_and_tried_again(inbox):
    def fail_once(event, connection):
        write(event)
        if event.attempt == 1:
            raise ValueError("no such customer")

    inbox.on(fail_once)
    inbox.deliver("a")

    while inbox.work():
        pass

    assert inbox.runs() == [("a", "fail_once", "done", 2)]
    assert inbox.effects() == ["a"]


def test_batch_ends_with_its_writes_or_not_at_all(inbox):
    def book(events, connection):
        for event in events:
            write(event)
        if inbox.rows("SELECT 1 FROM hookonce.events WHERE event_id = 'd'"):
            inbox.steal()

    on_batches(inbox, book)
    inbox.deliver("a", "b")
    inbox.deliver("c", keep_body=False)
    inbox.work()
    assert inbox.effects() == ["a", "b", "c"]
    assert inbox.rows("SELECT count(*) FROM hookonce.guards") == [(0,)]
    assert inbox.rows("SELECT batches, events FROM hookonce.batch_counts") == [(1, 3)]

    inbox.deliver("d", "e")
    inbox.work()

    assert inbox.effects() == ["a", "b", "c"]
    assert [row[2] for row in inbox.runs()] == ["done", "done", "done", "running", "running"]


def test_lines_of_a_batch_are_shown_with_each_of_its_events(inbox):
    def book(events, connection):
        for event in events:
            sys.stdout.write(f"booking {event.event_id}\n")

    on_batches(inbox, book)
    inbox.deliver("a", "b")

    with keeping_lines():
        inbox.work()

    assert [row[2] for row in inbox.runs()] == ["done", "done"]
    assert [lines_of(inbox, event) for event in (1, 2)] == [["booking a", "booking b"]] * 2


def test_rights_that_the_refusal_names_are_enough(plain_inbox, role, owner, database_url):
    def book(event, connection):
        sys.stdout.write(f"credited {event.event_id}\n")
        write(event)

    with pytest.raises(ConfigError, match="can't write the end of a run") as refusal:
        ledger.require_shared("default", database_url)
    grants = re.search(r"GRANT (USAGE ON SCHEMA hookonce), (.*) to it", str(refusal.value))
    for rights in [grants[1], *re.findall(r"[A-Z, ]+ ON hookonce\.\w+", grants[2])]:
        owner.execute(f"GRANT {rights.strip(', ')} TO {role}")
    ledger.require_shared("default", database_url)
    plain_inbox.on(book)
    plain_inbox.deliver("a")

    with keeping_lines():
        plain_inbox.work()

    assert plain_inbox.runs() == [("a", "book", "done", 1)]
    assert lines_of(plain_inbox, 1) == ["credited a"]
