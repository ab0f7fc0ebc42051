"""Mistakes of whoever settles what others have left; each name completes "a ledger whose worker …".

`tests/stories/test_interleavings.py` makes them in its own process.
"""

from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.maintenance import retention
from hookonce.receiver.ledger.replay import events as replays
from hookonce.receiver.ledger.runs import marks, takeover
from tests.stories.mistakes import replace, reword

MARKED = "SELECT event, n FROM hookonce.marks WHERE token = %s"
BY_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
"""So that a later statement sees no more than the first: as if both were one."""


def ignores_marks():
    reword(takeover, MARKED, f"{MARKED} AND false")


def looks_for_marks_in_the_statement_that_locks():
    def settled(connection, *args, **options):
        connection.execute(BY_ONE_SNAPSHOT)
        return right(connection, *args, **options)

    right = replace(takeover, "settle_claim", settled)


def takes_a_part_of_a_claim():
    reword(takeover, "FOR UPDATE OF q", "FOR UPDATE OF q SKIP LOCKED")


def buries_before_it_ranks():
    def settle(connection, claim, left, how):
        buried = 0
        for part in (
            [row for row in claim.rows if row in left.marked],
            [row for row in claim.rows if row not in left.marked],
        ):
            events, places = [row.event for row in part], [row.n for row in part]
            buried += right(connection, claim._replace(events=events, places=places), left, how)
        return buried

    right = replace(takeover, "settle_rows", settle)


def marks_without_the_lock():
    reword(marks, "FOR KEY SHARE OF q", "")


def goes_by_the_token_of_a_mark_alone():
    reword(
        takeover,
        MARKED,
        "SELECT q.event, q.n FROM hookonce.queue q JOIN hookonce.marks USING (token) WHERE token = %s",
    )


def leaves_marks_of_what_it_buried():
    reword(takeover, "DELETE FROM hookonce.marks WHERE token = %s", "SELECT %s::uuid")


def leaves_the_outcome_of_before_the_last():
    reword(replays, "SET is_last = false", "SET is_last = true")


def looks_at_the_queue_before_it_locks():
    is_open = "EXISTS (SELECT FROM hookonce.queue q WHERE q.event = events.id OFFSET 0)"
    reword(retention, f"WHERE id = ANY(%s) AND NOT {is_open}", "WHERE id = ANY(%s)")


def goes_on_before_its_run_is_settled():
    replace(SingleSlot, "_settle_left", lambda _: None)
