import threading
from datetime import timedelta
from functools import partial

import psycopg
import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import RetryId, Verdict, store, store_in
from hookonce.receiver.processes.waits import InThread, run
from tests.support.new_event import new_event
from tests.support.waiting import PATIENT, at_once


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def verdicts(connection, *events):
    return [store(connection, [event])[event.key].verdict for event in events]


def rows(connection, query):
    return connection.execute(query).fetchall()


def test_store_accepts_an_event_once(connection):
    first, again = verdicts(connection, new_event(), new_event())

    assert (first, again) == (Verdict.ACCEPTED, Verdict.DUPLICATE)
    assert rows(connection, "SELECT event_id, status, due_at <= now() FROM hookonce.event_states") == [
        ("evt_1", "received", True)
    ]
    assert rows(connection, "SELECT body FROM hookonce.bodies") == [(b"{}",)]


def test_store_keeps_sources_apart(connection):
    assert verdicts(connection, new_event(), new_event(source="billing")) == [Verdict.ACCEPTED] * 2


def test_store_keeps_the_first_body_when_another_comes_under_its_id(connection):
    assert verdicts(connection, new_event(body=b"one"), new_event(body=b"two"), new_event(body=b"two")) == [
        Verdict.ACCEPTED,
        Verdict.CONFLICT,
        Verdict.CONFLICT,
    ]
    assert rows(connection, "SELECT body FROM hookonce.bodies") == [(b"one",)]
    assert rows(connection, "SELECT body, deliveries, last_at > first_at FROM hookonce.conflicts") == [
        (b"two", 2, True)
    ]


class Meanwhile(InThread):
    """A way to wait in which something happens before the question of this number."""

    def __init__(self, number, happen):
        self._left, self._happen = number, happen

    async def ask_server(self, function, /, *args, **kwargs):
        self._left -= 1
        if not self._left:
            self._happen()
        return function(*args, **kwargs)


def test_store_takes_in_what_was_pruned_while_it_looked(connection):
    event = new_event()
    store(connection, [event])

    meanwhile = Meanwhile(1, lambda: connection.execute("DELETE FROM hookonce.events"))
    stored = run(store_in(connection, [event], meanwhile))

    assert stored[event.key].verdict is Verdict.ACCEPTED
    assert rows(connection, "SELECT count(*) FROM hookonce.event_states") == [(1,)]


def test_store_keeps_any_bytes(connection):
    body = bytes(range(256)) + b"\xed\xa0\x80\x00"

    store(connection, [new_event(body=body)])

    assert rows(connection, "SELECT body FROM hookonce.bodies") == [(body,)]


def test_store_takes_a_batch_in_any_order_and_answers_by_key(connection):
    events = [new_event(f"evt_{n}") for n in (5, 3, 4, 1, 2)]

    answers = store(connection, events)

    assert set(answers) == {event.key for event in events}
    assert len({row.id for row in answers.values()}) == 5


def test_store_compares_ids_by_their_bytes(connection):
    composed, decomposed = "caf\u00e9", "cafe\u0301"

    assert (
        verdicts(
            connection, new_event(composed), new_event(decomposed), new_event("EVT_1"), new_event("evt_1")
        )
        == [Verdict.ACCEPTED] * 4
    )


def test_store_makes_a_missing_partition(connection):
    today = rows(connection, "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")[0][0]
    connection.execute(f"DROP TABLE hookonce.bodies_{today}")

    assert verdicts(connection, new_event()) == [Verdict.ACCEPTED]
    assert rows(connection, "SELECT count(*) FROM hookonce.bodies") == [(1,)]


def test_store_gives_up_on_a_day_whose_partition_was_taken_out(connection):
    today = rows(connection, "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")[0][0]
    connection.execute(f"ALTER TABLE hookonce.bodies DETACH PARTITION hookonce.bodies_{today}")

    with pytest.raises(psycopg.errors.CheckViolation):
        verdicts(connection, new_event())


def test_store_points_to_the_first_event_when_an_unsigned_id_changes(connection):
    first, second = new_event("a", id_is_signed=False), new_event("b", id_is_signed=False)

    verdicts(connection, first, second)

    assert rows(connection, "SELECT e.event_id, f.event_id FROM hookonce.event_states e LEFT JOIN "
    "hookonce.events f ON f.id = e.repeat_of "
                            "ORDER BY e.id") == [("a", None), ("b", "a")]  # fmt: skip


def test_store_sees_no_repeat_where_ids_are_signed(connection):
    verdicts(connection, new_event("a"), new_event("b"))

    assert rows(connection, "SELECT count(repeat_of) FROM hookonce.event_states") == [(0,)]


def test_store_holds_a_repeat_when_the_source_says_so(connection):
    held = {"id_is_signed": False, "hold_repeats": True}

    assert verdicts(connection, new_event("a", **held), new_event("b", **held)) == [
        Verdict.ACCEPTED,
        Verdict.HELD,
    ]
    assert rows(connection, "SELECT event_id, due_at FROM hookonce.event_states WHERE status = 'held'") == [
        ("b", None)
    ]


def test_store_holds_all_but_one_of_many_repeats_at_once(database_url):
    def deliver(n):
        with connections.connect(database_url, **PATIENT) as own:
            barrier.wait()
            event = new_event(f"id-{n}", id_is_signed=False, hold_repeats=True)
            answers.append(store(own, [event])[event.key].verdict)

    answers, barrier = [], threading.Barrier(8, timeout=20)
    at_once(*(partial(deliver, n) for n in range(8)))

    assert sorted(answers) == [Verdict.ACCEPTED] + [Verdict.HELD] * 7


def test_store_keeps_an_unreadable_element_seen_and_dead(connection):
    store(connection, [new_event(type="unreadable", unreadable="bad_body: it is none", is_element=True)])

    assert rows(connection, "SELECT status, due_at FROM hookonce.event_states") == [("dead", None)]


def test_store_waits_for_a_twin_and_learns_the_truth(connection, database_url):
    with psycopg.connect(database_url) as twin:
        twin.execute(
            "INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed) "
            "VALUES ('stripe', 'stripe', 'evt_1', 'x', %s, true)",
            [new_event().fingerprint],
        )
        late = []
        waiting = threading.Thread(target=lambda: late.extend(verdicts(connection, new_event())))
        waiting.start()
        waiting.join(0.2)
        assert not late
        twin.commit()
        waiting.join()

    assert late == [Verdict.DUPLICATE]


def test_store_gives_up_on_a_lock_in_time(connection, database_url):
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE hookonce.events")

        with pytest.raises(psycopg.errors.LockNotAvailable):
            store(connection, [new_event()])


MINUTE = timedelta(minutes=1)


def retried(body=b"{}", within=MINUTE):
    return new_event("later", body, retry_ids=(RetryId("earlier", within),))


def test_store_knows_an_event_by_a_retry_id(connection):
    row = store(connection, [new_event("earlier")])["stripe", "earlier"]

    known = store(connection, [retried()])["stripe", "later"]

    assert known == row._replace(verdict=Verdict.DUPLICATE, retry_id="earlier")
    assert rows(connection, "SELECT event_id FROM hookonce.event_states") == [("earlier",)]


@pytest.mark.parametrize(
    ("other", "age"), [({}, 2 * MINUTE), ({"source": "billing"}, None), ({"event_id": "another"}, None)]
)
def test_store_takes_a_retry_id_for_none_where_it_is(connection, other, age):
    store(connection, [new_event(**{"event_id": "earlier"} | other)])
    if age:
        connection.execute("UPDATE hookonce.events SET received_at = received_at - %s", [age])

    assert verdicts(connection, retried(), retried()) == [Verdict.ACCEPTED, Verdict.DUPLICATE]


def test_store_prefers_an_events_own_id_to_a_retry_id(connection):
    own = store(connection, [new_event("later")])["stripe", "later"]
    store(connection, [new_event("earlier")])

    assert store(connection, [retried()])["stripe", "later"] == own._replace(verdict=Verdict.DUPLICATE)


def test_store_takes_another_body_for_another_event_whatever_its_retry_id(connection):
    store(connection, [new_event("earlier", b"one")])

    assert verdicts(connection, retried(b"two")) == [Verdict.ACCEPTED]
    assert rows(connection, "SELECT event FROM hookonce.conflicts") == []


def test_store_looks_for_retry_ids_of_some_events_of_a_batch(connection):
    store(connection, [new_event("earlier")])

    answers = store(connection, [new_event("plain"), retried(), new_event("unsigned", id_is_signed=False)])

    assert {key[1]: row.verdict for key, row in answers.items()} == {
        "plain": Verdict.ACCEPTED,
        "later": Verdict.DUPLICATE,
        "unsigned": Verdict.ACCEPTED,
    }


def test_store_holds_a_repeat_among_events_with_retry_ids(connection):
    others = (RetryId("no such", MINUTE),)
    repeat = new_event("later", id_is_signed=False, hold_repeats=True, retry_ids=others)

    assert verdicts(connection, new_event("first", id_is_signed=False), repeat) == [
        Verdict.ACCEPTED,
        Verdict.HELD,
    ]


def test_store_takes_in_what_grew_too_old_for_a_retry_id_while_it_looked(connection):
    event = retried()
    store(connection, [new_event("earlier")])
    age = "UPDATE hookonce.events SET received_at = received_at - interval '1 minute'"

    stored = run(store_in(connection, [event], Meanwhile(2, lambda: connection.execute(age))))

    assert stored[event.key].verdict is Verdict.ACCEPTED


def test_store_finds_a_repeat_by_what_was_signed(connection):
    unsigned = {"id_is_signed": False, "hold_repeats": True, "repeat_mark": b"m"}

    first, again, other = verdicts(
        connection,
        new_event("a", b"1", **unsigned),
        new_event("b", b"2", **unsigned),
        new_event("c", b"3", **unsigned | {"repeat_mark": b"n"}),
    )

    assert (first, again, other) == (Verdict.ACCEPTED, Verdict.HELD, Verdict.ACCEPTED)
    assert rows(
        connection,
        "SELECT e.event_id, f.event_id FROM hookonce.event_states e JOIN hookonce.event_states f ON f.id = e.repeat_of",
    ) == [("b", "a")]


def test_store_keeps_marks_of_sources_apart_and_none_of_signed_ids(connection):
    unsigned = {"id_is_signed": False, "repeat_mark": b"m"}
    events = [
        new_event("a", b"1", **unsigned),
        new_event("b", b"2", source="other", **unsigned),
        new_event("c", b"3", repeat_mark=b"n"),
    ]

    store(connection, events)

    assert rows(connection, "SELECT source, mark FROM hookonce.repeat_marks ORDER BY source") == [
        ("other", b"m"),
        ("stripe", b"m"),
    ]
    assert rows(connection, "SELECT count(repeat_of) FROM hookonce.event_states") == [(0,)]


def test_store_marks_events_of_a_batch_some_of_which_have_retry_ids(connection):
    others = (RetryId("no such", timedelta(minutes=1)),)
    unsigned = {"id_is_signed": False, "hold_repeats": True}

    store(connection, [new_event("a", b"1", repeat_mark=b"m", **unsigned), new_event("b", b"2", **unsigned)])
    answers = verdicts(connection, new_event("c", b"3", repeat_mark=b"m", retry_ids=others, **unsigned))

    assert answers == [Verdict.HELD]


def test_store_holds_all_but_one_of_many_that_were_signed_alike_at_once(database_url):
    answers = []

    def take(n):
        with connections.connect(database_url) as connection:
            event = new_event(
                f"id-{n}", b"%d" % n, id_is_signed=False, hold_repeats=True, repeat_mark=b"signed alike"
            )
            answers.extend(verdicts(connection, event))

    at_once(*(partial(take, n) for n in range(8)))

    assert sorted(answers) == [Verdict.ACCEPTED] + [Verdict.HELD] * 7
