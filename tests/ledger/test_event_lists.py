"""Lists begin where events of a status are to be found, and list those that the view says are in it."""

import random
from datetime import timedelta

import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries import events, handler_stats
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import end_events, lose_events, put_into_state

LONG = timedelta(minutes=1)
STATES = [
    ("received", ()),
    ("held", ()),
    ("ignored", ()),
    ("dead", ()),
    (None, [("credit", "done", 1), ("mail", "done", 2)]),
    (None, [("credit", "dead", 3), ("mail", "dead", 3)]),
    (None, [("credit", "dead", 3), ("mail", "done", 1)]),
    (None, [("credit", "dead", 3), ("mail", "waiting", 1)]),
    (None, [("credit", "waiting", 1), ("mail", "waiting", 1)]),
    (None, [("credit", "running", 1), ("mail", "waiting", 0)]),
    (None, [("credit", "dead", 1), ("mail", "running", 1)]),
    (None, [("credit", "discarded", 3), ("mail", "done", 1)]),
    (None, [("credit", "discarded", 3), ("mail", "discarded", 3)]),
    ("lost", ()),
]


@pytest.fixture(scope="module")
def ledger(fresh_database):
    """Two hundred events in all states and of two types, some of them replayed, newer ones all waiting."""
    chance = random.Random(1)  # noqa: S311  the same each time
    with fresh_database() as url, connections.connect(url, statement=LONG) as connection:
        for n in range(200):
            kind = chance.choice(["invoice.paid", "push"])
            ((_, row),) = store(connection, [new_event(f"evt_{n}", type=kind)]).items()
            status, runs = chance.choice(STATES)
            if chance.random() < 0.3:
                end_events(connection, "dead", [row.id], handler="credit")
                connection.execute("UPDATE hookonce.runs SET is_last = false WHERE event = %s", [row.id])
                connection.execute(
                    "INSERT INTO hookonce.queue (event, received_at, source, type, due_at) "
                    "SELECT id, received_at, source, type, now() FROM hookonce.events WHERE id = %s",
                    [row.id],
                )
                runs = [(handler, state, attempts) for handler, state, attempts in runs if handler == "mail"]
                status = status or "waiting"
            if status == "lost":
                lose_events(connection, [row.id])
            else:
                put_into_state(connection, row.id, status, runs)
        for n in range(30):
            ((_, row),) = store(connection, [new_event(f"new_{n}")]).items()
            put_into_state(connection, row.id, runs=[("credit", "waiting", 1)])
        connection.execute("ANALYZE")
        yield connection


@pytest.fixture(autouse=True)
def short_ranges(monkeypatch):
    """As if there were millions: what is looked at is divided."""
    monkeypatch.setattr(events, "NEWEST", 10)
    monkeypatch.setattr(events, "WALKED", 30)
    monkeypatch.setattr(events, "LOST_RANGE", 20)
    monkeypatch.setattr(events, "PAGE_SIZE", 30)


def as_the_view_says(ledger, condition, *values):
    found = ledger.execute(f"SELECT id FROM hookonce.event_states WHERE {condition} ORDER BY id DESC", values)  # noqa: S608
    return [row[0] for row in found]


STATUSES = list(EventStatus)


def test_ledger_has_events_of_every_status(ledger):
    counted = {status: len(as_the_view_says(ledger, "status = %s", status)) for status in STATUSES}

    assert min(counted.values()) > 3


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("limit", [0, 5, 1000])
@pytest.mark.parametrize(
    "more", [{}, {"type": "push"}, {"source": "stripe", "type": "pu*"}, {"type": "none"}]
)
def test_list_by_status_has_those_that_the_view_has(ledger, status, limit, more):
    condition = {"push": "type = 'push'", "pu*": "type = 'push'", "none": "false"}.get(
        more.get("type"), "true"
    )
    expected = as_the_view_says(ledger, f"status = %s AND {condition}", status)

    listed = [row.id for row in events.events(ledger, Filter(status=status, **more), limit)]

    assert listed == expected[: limit or None]


@pytest.mark.parametrize("status", [None, *STATUSES])
@pytest.mark.parametrize("more", [{}, {"type": "push"}])
def test_pages_lead_through_all_and_back(ledger, status, more):
    wanted = Filter(status=status, **more)
    condition = "type = 'push'" if more else "true"
    expected = as_the_view_says(ledger, f"(%s::text IS NULL OR status = %s) AND {condition}", status, status)

    seen, before = [], None
    while True:
        page = events.newest(ledger, wanted, 7, before, LONG)
        seen += [row.id for row in page.rows]
        if len(page.rows) < 7:
            break
        before = seen[-1]
    back = events.oldest_after(ledger, wanted, 1000, seen[-1] if seen else 0, LONG)

    assert (seen, page.rest) == (expected, None)
    assert [row.id for row in back] == expected[:-1]


@pytest.mark.parametrize("status", STATUSES)
def test_row_of_a_list_says_what_was_asked_for(ledger, status):
    rows = list(events.events(ledger, Filter(status=status), 5))

    assert {row.status for row in rows} == {status}
    assert all(
        (row.due_at is None) == (status in {"held", "done", "dead", "discarded", "ignored", "lost"})
        for row in rows
    )


def test_event_with_a_dead_run_is_found_by_its_handler_whatever_else_is_open(ledger):
    expected = as_the_view_says(
        ledger,
        "id IN (SELECT event FROM hookonce.runs WHERE is_last AND status = 'dead' AND handler = 'credit')",
    )

    listed = list(events.events(ledger, Filter(handler="credit"), 0))

    assert [row.id for row in listed] == expected
    assert {row.status for row in listed} >= {"dead", "waiting", "running"}


def test_search_of_a_handler_finds_what_it_has_open_and_what_it_has_ended(ledger):
    expected = as_the_view_says(
        ledger, "id IN (SELECT event FROM hookonce.queue WHERE handler = 'mail' UNION "
        "SELECT event FROM hookonce.runs WHERE handler = 'mail')"
    )  # fmt: skip

    assert [row.id for row in events.events(ledger, Filter(run_by="mail"), 0)] == expected


def test_figures_of_a_handler_count_the_last_cycle_of_each_run(ledger):
    counted = ledger.execute(
        "SELECT handler, count(*), count(*) FILTER (WHERE status = 'done'), count(*) FILTER (WHERE status = 'dead'), "
        "count(*) FILTER (WHERE status IN ('waiting', 'running')) FROM hookonce.run_states GROUP BY 1 ORDER BY 1"
    ).fetchall()

    figures = handler_stats.handlers(ledger)

    assert [(each.name, each.runs, each.done, each.dead, each.open) for each in figures] == counted
