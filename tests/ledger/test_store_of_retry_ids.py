"""Two copies of one event at once, each under another form of its id: one is stored, whoever comes first."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial

import psycopg
import pytest

from hookonce.providers import Delivery, Event
from hookonce.providers.kit.registry import load
from hookonce.receiver.intake import new_events
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import LOCK_RETRIES, RetryId, Verdict, retry_locks, store
from hookonce.receiver.source import Source
from tests.support.new_event import new_event
from tests.support.waiting import PATIENT, at_once, until

ROUNDS = 60
MINUTE = timedelta(minutes=1)
WAITING = """
SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
WHERE d.datname = current_database() AND locktype = 'advisory' AND NOT granted
"""


def stored_at_once(database_url, rounds):
    """Store both copies of each round at one moment, by two receivers; the verdicts of each round."""
    start = threading.Barrier(2, timeout=30)
    answers = [[], []]

    def receive(which):
        with connections.connect(database_url, **PATIENT) as connection:
            for copies in rounds:
                start.wait()
                batch = copies[which]
                found = store(connection, batch)
                answers[which].append([found[event.key].verdict for event in batch])

    at_once(*(partial(receive, which) for which in range(2)))
    return list(zip(*answers, strict=True))


def forms(number, **changes):
    """The two forms of one event, each of which knows the other."""
    body = b'{"number": %d}' % number
    names = (f"{number}@14:07", f"{number}@14:08")
    return [
        new_event(own, body, retry_ids=(RetryId(other, MINUTE),), **changes)
        for own, other in (names, names[::-1])
    ]


def test_copies_at_once_under_two_forms_of_an_id_are_one_event(database_url):
    rounds = [[[copy] for copy in forms(number)] for number in range(ROUNDS)]

    answers = stored_at_once(database_url, rounds)

    counts = Counter(verdict for pair in answers for one in pair for verdict in one)
    assert counts == {Verdict.ACCEPTED: ROUNDS, Verdict.DUPLICATE: ROUNDS}


@pytest.mark.parametrize(
    "changes", [{}, {"id_is_signed": False, "hold_repeats": True}], ids=["signed", "held"]
)
def test_batches_at_once_in_another_order_do_not_deadlock(database_url, changes):
    rounds = []
    for number in range(0, 10 * ROUNDS, 20):
        pairs = [forms(number + each, **changes) for each in range(20)]
        rounds.append([[a for a, _ in pairs], [b for _, b in reversed(pairs)]])

    answers = stored_at_once(database_url, rounds)

    counts = Counter(verdict for pair in answers for one in pair for verdict in one)
    assert counts == {Verdict.ACCEPTED: 10 * ROUNDS, Verdict.DUPLICATE: 10 * ROUNDS}


def test_copies_at_once_on_both_sides_of_a_step_of_receipt_are_one_event(database_url):
    provider = load("dropbox")
    source = Source("dropbox", provider, ("secret",))
    step = provider.id_period / 6
    edge = datetime(2026, 1, 1, tzinfo=UTC)
    rounds = []
    for number in range(ROUNDS):
        delivery = Delivery("POST", "https://example.com/hooks/dropbox", {}, b'{"n": %d}' % number)
        event = Event("a", "b", {})
        rounds.append(
            [[new_events.new_event(source, delivery, event, "{}", edge + n * step)] for n in (0, -1)]
        )
    assert rounds[0][0][0].key != rounds[0][1][0].key

    answers = stored_at_once(database_url, rounds)

    counts = Counter(verdict for pair in answers for one in pair for verdict in one)
    assert counts == {Verdict.ACCEPTED: ROUNDS, Verdict.DUPLICATE: ROUNDS}


def test_retry_across_the_end_of_a_step_finds_the_first_in_either_direction(database_url):
    earlier, later = forms(1)
    other_earlier, other_later = forms(2)
    with connections.connect(database_url) as connection:
        answers = [
            store(connection, [each])[each.key].verdict
            for each in (earlier, later, other_later, other_earlier)
        ]

    assert answers == [Verdict.ACCEPTED, Verdict.DUPLICATE] * 2


def test_event_with_retry_ids_waits_for_one_of_its_locks_and_others_for_none(database_url):
    copy, plain = forms(1)[0], new_event("plain", b"plain")
    done = []

    def receive():
        with connections.connect(database_url, **PATIENT) as connection:
            done.append(store(connection, [copy])[copy.key].verdict)

    with (
        psycopg.connect(database_url) as holder,
        connections.connect(database_url) as connection,
    ):
        holder.execute(LOCK_RETRIES, [retry_locks([copy])])
        thread = threading.Thread(target=receive)
        thread.start()
        until(lambda: connection.execute(WAITING).fetchone()[0], 1)
        assert store(connection, [plain])[plain.key].verdict is Verdict.ACCEPTED
        assert done == []
        holder.commit()
        thread.join()

    assert done == [Verdict.ACCEPTED]
    assert retry_locks([plain]) == []


def test_locks_of_a_large_batch_are_bounded():
    batch = [copy for number in range(3000) for copy in forms(number)]

    assert len(retry_locks(batch)) <= 256
    assert retry_locks(batch) == sorted(set(retry_locks(batch)))
