"""A ledger that an unreleased version has made: refused and unharmed; its events are brought over, and held."""

import psycopg
import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.dev.stack import free_port
from hookonce.receiver.ledger.database import migrate
from tests.support.dev_stack import hookonce
from tests.support.in_process import Receiver
from tests.support.outcomes import put_into_state

SECRET = "whsec_of_the_tests"
COMMANDS = [
    ("db", "upgrade"),
    ("serve", "--bind", "127.0.0.1:{port}", "--desk", "off"),
    ("worker",),
    ("worker", "--alone"),
    ("sweep", "--once"),
    ("doctor",),
    ("dev", "--port", "{port}"),
    ("replay", "1"),
    ("events", "list"),
    ("events", "erase", "1", "--yes"),
    ("pause", "stripe"),
]
ROWS = "SELECT '{0}', md5(string_agg(t::text, ',' ORDER BY t::text)) FROM hookonce.{0} t"
TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = 'hookonce'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1
"""


@pytest.fixture
def unreleased(database_url, redis_url, tmp_path):
    """The URL of a ledger that says the last of the 24 unreleased revisions, with an event that was handled.

    Its events were exported before, as by that version's own command.
    """
    deliver(database_url, redis_url, "evt_1")
    exported = hookonce("events", "export", place=tmp_path, DATABASE_URL=database_url)
    (tmp_path / "events.jsonl").write_text(exported.stdout)
    with psycopg.connect(database_url, autocommit=True) as connection:
        put_into_state(connection, 1, "done", [("credit", "done", 1)])
        connection.execute("UPDATE hookonce.hookonce_version SET version_num = '0024'")
    return database_url


def deliver(url, redis_url, event_id):
    """Deliver an event, as its sender does; return the answer."""
    receiver = Receiver(url, redis_url)
    receiver.add("stripe", load("stripe"), SECRET)
    body = b'{"id": "%s", "type": "a"}' % event_id.encode()
    headers = load("stripe").sign(body, SECRET, receiver.now)
    answer = receiver.send("stripe", Delivery("POST", "", headers, body)).json["status"]
    receiver.close()
    return answer


def everything(url):
    with psycopg.connect(url) as connection:
        names = [name for (name,) in connection.execute(TABLES)]
        return [connection.execute(ROWS.format(name)).fetchone() for name in names]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command_refuses_the_ledger_in_a_line_and_leaves_it_as_it_is(
    unreleased, redis_url, tmp_path, command
):
    before = everything(unreleased)
    words = [word.format(port=free_port()) for word in command]

    done = hookonce(*words, place=tmp_path, timeout=60, DATABASE_URL=unreleased, REDIS_URL=redis_url)

    [line] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (78, "")
    assert line.startswith("hookonce: the ledger in the schema hookonce of the database ")
    assert "is of an unreleased version (revision 0024, expected " in line
    assert "`hookonce events export`" in line
    assert "`hookonce events import --no-run`" in line
    assert everything(unreleased) == before


@pytest.mark.usefixtures("unreleased")
def test_events_are_brought_into_a_new_ledger_held_and_come_again_as_duplicates(
    empty_database, redis_url, tmp_path
):
    migrate.upgrade(empty_database)
    imported = hookonce(
        "events", "import", "--no-run", "events.jsonl", place=tmp_path, DATABASE_URL=empty_database
    )

    assert imported.stderr.startswith("1 new and held, ")
    assert deliver(empty_database, redis_url, "evt_1") == "duplicate"
    with psycopg.connect(empty_database) as connection:
        states = connection.execute("SELECT status, due_at FROM hookonce.event_states").fetchall()
    assert states == [("held", None)]
