"""Workers, and what holds handlers up."""

import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg import sql

from hookonce.jobs.handlers import Handler, Registry
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.runs import breakers
from hookonce.receiver.ledger.runs.run_limits import Rate, RunLimit
from hookonce.receiver.ledger.stats import worker_slots
from tests.desk.conftest import at_the_desk
from tests.support import desk
from tests.support.waiting import until

ODD = 'shop.<b>"credit"</b>\u202e'


def workers(here):
    return here.ask("list_workers", scope="read").json


def handlers(here):
    return {row.pop("name"): row for row in here.ask("list_handlers", scope="read").json["data"]}


def test_no_worker_has_reported(here):
    assert workers(here) == {"data": [], "suspects": {}, "long_transactions": []}
    assert handlers(here) == {}


def test_workers_with_their_slots_are_listed_by_name(here):
    desk.report(here.connection, name="host:2", slots=16, busy=9, lost=2)
    desk.report(here.connection, name="host:1", slots=4, busy=0)
    desk.report(here.connection, name="host:3", slots=1, busy=1)

    listed = workers(here)["data"]

    times = [datetime.fromisoformat(each.pop("seen_at")) for each in listed]
    assert all(0 <= each.pop("seconds_ago") < 60 for each in listed)
    assert listed == [
        {"name": "host:1", "slots": 4, "busy": 0, "lost": 0},
        {"name": "host:2", "slots": 16, "busy": 9, "lost": 2},
    ]
    assert all(abs(datetime.now(UTC) - at) < timedelta(minutes=1) for at in times)


def test_suspects_are_counted_by_handler(here):
    desk.suspects(here.connection, ODD, 3)

    assert workers(here)["suspects"] == {ODD: 3}


def test_transaction_that_wrote_and_waits_is_named_with_its_event(here, monkeypatch):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    with desk.waiting(here.settings.database_url) as pid:
        desk.report(here.connection, (ODD, 77, pid))

        (named,) = until(lambda: workers(here)["long_transactions"])

    assert (named["handler"], named["event"]) == (ODD, 77)
    assert 0.1 <= named["seconds"] < 60


def test_handler_says_what_holds_it_up(here):
    desk.wait_for_place(here.connection, "shop.mail", 2)
    desk.wait_for_rate(here.connection, "shop.sms", 5)
    desk.fail_in_a_row(here.connection, "shop.open", 5, limit=5)
    desk.fail_in_a_row(here.connection, "shop.closed", 4, limit=5)

    listed = handlers(here)

    assert {name: row["waiting_for_limit"] for name, row in listed.items() if row["waiting_for_limit"]} == {
        "shop.mail": 2
    }
    assert [name for name, row in listed.items() if row["rate_delay_seconds"]] == ["shop.sms"]
    assert 20 < listed["shop.sms"]["rate_delay_seconds"] <= 30
    error = "ConnectionError (shop.py:7)"
    times = [
        row["breaker"].pop(key)
        for row in listed.values()
        if row["breaker"] and not row["breaker"]["is_open"]
        for key in ("opened_at", "try_at", "oldest_waiting_seconds")
    ]
    assert times == [None] * 3
    for key in ("opened_at", "try_at", "oldest_waiting_seconds"):
        listed["shop.open"]["breaker"].pop(key)
    assert {name: row["breaker"] for name, row in listed.items() if row["breaker"]} == {
        "shop.open": {"handler": "shop.open", "failures": 5, "error": error, "is_open": True, "waiting": 0},
        "shop.closed": {
            "handler": "shop.closed",
            "failures": 4,
            "error": error,
            "is_open": False,
            "waiting": 0,
        },
    }
    assert [name for name, row in listed.items() if row["is_paused"]] == ["shop.open"]


def test_handler_that_is_stopped_says_what_it_holds_since_when_and_until_when(here):
    desk.stop(here.connection, "shop.open", 2)

    listed = handlers(here)["shop.open"]

    opened, tried = (datetime.fromisoformat(listed["breaker"][key]) for key in ("opened_at", "try_at"))
    assert tried - opened == breakers.FIRST_TRY
    assert listed["breaker"]["waiting"] == 2
    assert 90 <= listed["breaker"]["oldest_waiting_seconds"] < 120
    assert listed["paused_by"] == "breaker"


def test_handler_says_what_its_worker_holds_it_to(here):
    limit = RunLimit(Rate.parse("100/m"), 3, "account")
    registry = Registry()
    times = (timedelta(0), timedelta(0)), timedelta(seconds=30)
    registry.add(Handler("shop.ship", "stripe", "*", print, 3, *times, limit=limit, breaker=5, tx="none"))
    register_handlers(here.connection, registry.rows(), registry.declarations())
    said = handlers(here)["shop.ship"]["limits"]

    registry = Registry()
    registry.add(Handler("shop.ship", "stripe", "*", print, 3, *times))
    register_handlers(here.connection, registry.rows(), registry.declarations())

    assert said == {
        "rate": "100/m",
        "concurrency": 3,
        "per": "account",
        "breaker": 5,
        "tx": "none",
        "wait_seconds": None,
        **dict.fromkeys(("stale", "entity", "version", "awaits")),
    }
    assert set(handlers(here)["shop.ship"]["limits"].values()) == {None}


def test_pause_says_whether_a_person_or_a_breaker_has_made_it(here):
    desk.fail_in_a_row(here.connection, "shop.open", 5, limit=5)
    here.ask("pause", kind="source", name="stripe")

    before = here.ask("list_pauses").json["data"]
    taken_over = here.ask("pause", kind="handler", name="shop.open").json

    assert [(each["name"], each["by"]) for each in before] == [("shop.open", "breaker"), ("stripe", "person")]
    assert (taken_over["name"], taken_over["by"]) == ("shop.open", "person")


def test_handler_says_how_its_batches_went(here):
    desk.halve(here.settings, here.connection, "shop.track", "no such place")

    (listed,) = [row["batches"] for row in handlers(here).values()]

    assert "ValueError" in listed.pop("error")
    assert listed == {
        "handler": "shop.track",
        "batches": 1,
        "events": 3,
        "halvings": 1,
        "size": 4,
        "waiting": 2,
    }


@contextmanager
def role_of_its_own(database_url):
    """The database as a role sees it that may use the ledger, and see nobody's session but its own."""
    name = sql.Identifier(f"app_{uuid.uuid4().hex[:12]}")
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(
            sql.SQL(
                "CREATE ROLE {0}; GRANT USAGE ON SCHEMA hookonce TO {0}; "
                "GRANT ALL ON ALL TABLES IN SCHEMA hookonce TO {0}; "
                "GRANT USAGE ON ALL SEQUENCES IN SCHEMA hookonce TO {0}"
            ).format(name)
        )
        separator = "&" if "?" in database_url else "?"
        yield f"{database_url}{separator}options=-c%20role%3D{name.as_string(None).strip(chr(34))}"
        admin.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(name))


def test_role_that_sees_no_sessions_lists_workers_all_the_same(database_url, redis_url, monkeypatch):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    with (
        role_of_its_own(database_url) as url,
        at_the_desk(url, redis_url) as here,
        psycopg.connect(database_url, autocommit=True) as admin,
        desk.waiting(database_url) as pid,
    ):
        desk.report(here.connection, ("shop.credit", 1, pid))
        until(lambda: worker_slots.long_transactions(admin))

        listed = workers(here)

    assert [each["busy"] for each in listed["data"]] == [3]
    assert listed["long_transactions"] == []
