"""Mistakes of a receiver; each name completes "a receiver that …"."""

# ruff: noqa: SLF001  a mistake is made inside

import threading
from hashlib import sha256

from hookonce.providers.kit.events.fingerprint import delivery_fingerprint
from hookonce.providers.kit.schemes import hmac_signature
from hookonce.receiver.failpoints import reach
from hookonce.receiver.intake import deduplication, new_events, pipeline
from hookonce.receiver.ledger import store
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import Stored, Verdict
from hookonce.receiver.processes.waits import IN_THREAD, run
from hookonce.receiver.redis import dedup_window
from tests.stories.mistakes import replace, reword
from tests.support.rewording import statement

UNTIL_ANSWERED = 0.05  # seconds


def believes_the_nx_alone():
    replace(dedup_window.DedupWindow, "_is_marked", lambda _self, _place, _entry, _answer: True)


def believes_the_window_whatever_the_body():
    replace(
        dedup_window.DedupWindow, "_is_marked", lambda _self, _place, _entry, answer: answer[:7] == b"stored:"
    )


def retries_the_set_nx_and_believes_it():
    class Believing(dedup_window.DedupWindow):
        def _is_marked(self, _place, _entry, _answer):
            return True

    async def exchange(self, *asked):
        try:
            return await right(self, *asked)
        except dedup_window.WindowUnavailable:
            return await Believing(self._client, self._breaker).exchange(*asked)

    right = replace(dedup_window.DedupWindow, "exchange", exchange)


def answers_before_the_commit():
    async def commit_later(self, new, _waits):
        threading.Timer(UNTIL_ANSWERED, lambda: run(right(self, new, IN_THREAD))).start()
        return [Stored(1, Verdict.ACCEPTED, event.fingerprint) for event in new.events]

    right = replace(pipeline.Intake, "_stored", commit_later)
    replace(pipeline.Intake, "is_quick", lambda _self, _source: False)


def settles_before_the_commit():
    async def store_settled(self, deliveries, found, waits):
        ttls = {deduplication._entry(e): d.ttl for d in deliveries for e in d.events}
        new = {entry: ttl for entry, ttl in ttls.items() if entry not in found}
        stored = dedup_window.Remembered(self._work_queue.queue, self._place, new)
        await self._window.settle(stored, waits)
        reach("window.settled")
        return await right(self, deliveries, found, waits)

    right = replace(deduplication.Deduplicator, "_store", store_settled)


def keeps_the_body_in_a_second_transaction():
    leave_out("), kept AS (", "), queued AS (")

    async def insert(connection, events, waits):
        stored = await right(connection, events, waits)
        reach("ledger.inserted")
        for event in events:
            if event.key in stored:
                content = [event.url, event.headers, event.body, event.is_element, stored[event.key].id]
                connection.execute(KEEP, content)
        return stored

    right = replace(store, "insert", insert)


KEEP = """
INSERT INTO hookonce.bodies (event, received_at, url, headers, body, is_element)
SELECT id, received_at, %s, %s::text::json, %s, %s FROM hookonce.events WHERE id = %s
"""


def puts_into_the_queue_in_a_second_transaction():
    leave_out("), queued AS (", ")%u")

    async def insert(connection, events, waits):
        stored = await right(connection, events, waits)
        reach("ledger.inserted")
        for event in events:
            if event.key in stored:
                connection.execute(QUEUE, [stored[event.key].id])
        return stored

    right = replace(store, "insert", insert)


def leave_out(beginning, what_follows):
    """Leave a part out of the statement that inserts events."""
    said = statement(store, beginning)
    reword(store, said[said.index(beginning) : said.index(what_follows)], "")


QUEUE = """
INSERT INTO hookonce.queue (event, received_at, source, type, due_at)
SELECT id, received_at, source, type, now() FROM hookonce.events WHERE id = %s
"""


def overwrites_the_body_on_conflict():
    def compare(connection, known):
        answers = right(connection, known)
        for event in known:
            if answers[event.key].verdict is Verdict.CONFLICT:
                connection.execute(
                    "UPDATE hookonce.bodies SET body = %s WHERE event = %s",
                    [event.body, answers[event.key].id],
                )
        return answers

    right = replace(store, "_compare", compare)


def forgets_the_other_body():
    nothing = "SELECT %b::bigint, %b::bytea, %b::text, %b::bytea, %b::text"
    reword(store, statement(store, "INSERT INTO hookonce.conflicts"), nothing)


def takes_a_counted_retry_for_another_body():
    right = replace(
        new_events, "delivery_fingerprint", lambda delivery, _volatile: sha256(delivery.body).digest()
    )
    assert right is delivery_fingerprint


def leaves_the_timeline_out():
    timeline = "left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)"
    reword(connections, timeline, "'00000000'")
    reword(connections, "pg_postmaster_start_time()", "'then'")  # says as much of a restore


def leaves_the_database_out():
    reword(connections, "database.oid ||", "0 ||")


def checks_no_signature():
    replace(hmac_signature, "expect_match", lambda *_: None)
