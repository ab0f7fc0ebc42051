"""Mistakes of a receiver; each name completes "a receiver that …"."""

# ruff: noqa: SLF001  a mistake is made inside

import threading
from hashlib import sha256

from providers.kit import hmacs
from receiver import batch, database, intake, window
from receiver.failpoints import reach
from receiver.ledger import store
from receiver.ledger.store import Verdict


def believes_the_nx_alone():
    def claim(self, place, entries):
        return [answer is not None for answer in ask(self, place, entries)]

    window.Window.claim = claim


def believes_the_window_whatever_the_body():
    def claim(self, place, entries):
        return [(answer or b"").startswith(b"accepted") for answer in ask(self, place, entries)]

    window.Window.claim = claim


def retries_the_set_nx_and_believes_it():
    right = window.Window.claim

    def claim(self, place, entries):
        try:
            return right(self, place, entries)
        except window.WindowUnavailable:
            return [answer is not None for answer in ask(self, place, entries)]

    window.Window.claim = claim


def answers_before_the_commit():
    def store_later(self, source, delivery, events, *rest):
        threading.Thread(target=right, args=[self, source, delivery, events, *rest]).start()
        return intake.Outcome([(event.id, Verdict.ACCEPTED) for event in events])

    right = intake.Intake._store
    intake.Intake._store = store_later


def settles_before_the_commit():
    def store_settled(self, parcels, found):
        entries = {batch._copy(e): batch._entry(e, p.ttl) for p in parcels for e in p.events}
        new = [entries[copy] for copy in entries if copy not in found]
        self._window.settle(self._place, new, self._bell.queue)
        reach("window.settled")
        return right(self, parcels, found)

    right = batch.Lane._store
    batch.Lane._store = store_settled


def keeps_the_body_in_a_second_transaction():
    start, end = (
        store._INSERT.index("), kept AS ("),
        store._INSERT.index(")\nSELECT source, event_id, id, status"),
    )
    store._INSERT = store._INSERT[:start] + store._INSERT[end:]
    right = store._insert

    def insert(connection, events):
        stored = right(connection, events)
        reach("ledger.inserted")
        for event in events:
            if event.key in stored:
                content = [event.url, event.headers, event.body, event.is_element, stored[event.key].id]
                connection.execute(KEEP, content)
        return stored

    store._insert = insert


KEEP = """
INSERT INTO bodies (event, received_at, url, headers, body, is_element)
SELECT id, received_at, %s, %s::text::json, %s, %s FROM events WHERE id = %s
"""


def overwrites_the_body_on_conflict():
    right = store._compare

    def compare(connection, known):
        answers = right(connection, known)
        for event in known:
            if answers[event.key].verdict is Verdict.CONFLICT:
                connection.execute(
                    "UPDATE bodies SET body = %s WHERE event = %s", [event.body, answers[event.key].id]
                )
        return answers

    store._compare = compare


def forgets_the_other_body():
    store._CONFLICT = "SELECT %b::bigint, %b::bytea, %b::text, %b::bytea, %b::text"


def takes_a_counted_retry_for_another_body():
    intake.fingerprint = lambda body, _volatile: sha256(body).digest()


def leaves_the_timeline_out():
    right = database.where_am_i

    def where_am_i(connection):
        place = right(connection)
        return place and place.rpartition("-")[0]

    database.where_am_i = where_am_i


def checks_no_signature():
    hmacs.expect_match = lambda *_: None


def ask(self, place, entries):
    """What the window holds for each entry, claimed if it was nothing."""
    keys = [window._key(place, entry) for entry in entries]
    return self._ask(lambda: self._claim(keys, [60_000]))
