"""Mistakes of whoever settles what others have left; each name completes "a ledger whose worker …".

`tests/stories/test_interleavings.py` makes them in its own process.
"""

from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.maintenance import retention
from hookonce.receiver.ledger.replay import events as replays
from hookonce.receiver.ledger.runs import takeover
from tests.stories.mistakes import replace, reword


def takes_a_part_of_a_claim():
    reword(takeover, "FOR UPDATE OF q", "FOR UPDATE OF q SKIP LOCKED")


def leaves_the_outcome_of_before_the_last():
    reword(replays, "SET is_last = false", "SET is_last = true")


def looks_at_the_queue_before_it_locks():
    is_open = "EXISTS (SELECT FROM hookonce.queue q WHERE q.event = events.id OFFSET 0)"
    reword(retention, f"WHERE id = ANY(%s) AND NOT {is_open}", "WHERE id = ANY(%s)")


def goes_on_before_its_run_is_settled():
    replace(SingleSlot, "_settle_left", lambda _: None)
