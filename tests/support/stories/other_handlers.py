"""Handlers of other kinds than those of the stories: a batch, a limit, long work without a transaction, a step.

An event's `story` may say {"hold": seconds}: its handler has its work in hand for so long, as if it called an API.
Beside the ledger's own account there are two of the world outside: whom a step charged (a line with the key), and how
many of a limited handler were at work at once (a lock of PostgreSQL's for each place, which a killed session lets go).
"""

import time

from sqlalchemy import text

from hookonce import NEVER_HAPPENED, on, on_batch
from tests.support.stories.acting import directory, effect, enter, note, story_of
from tests.support.stories.outside import GATHER, HAUL, LOCKS, MOST, PAY, PLACES, RATE, WAIT, WEIGH, World

EFFECT = text("INSERT INTO effects VALUES (:source, :event_id, :handler, :attempt, :digest)")
EFFECT_ONCE = text("""
INSERT INTO effects SELECT :source, :event_id, :handler, :attempt, :digest
WHERE NOT EXISTS (SELECT FROM effects WHERE (source, event_id, handler) = (:source, :event_id, :handler))
""")
TAKE_PLACE = text("SELECT pg_try_advisory_xact_lock(:locks, :place)")


@on_batch(
    GATHER.source, GATHER.pattern, name=GATHER.handler, most=MOST, wait=WAIT, attempts=10, backoff=(0, 0)
)
def gather(events, tx):
    """Take effect for all of them; who is beside others is charged with nothing, so he is written down at the end."""
    if len(events) == 1:
        enter(events[0], GATHER)
    for event in events:
        tx.execute(EFFECT, effect(event, GATHER))
    time.sleep(max(story_of(event).get("hold", 0) for event in events))
    for event in events if len(events) > 1 else ():
        note(event, GATHER.handler, counted=True)


@on(HAUL.source, HAUL.pattern, name=HAUL.handler, tx="none", attempts=10, backoff=(0, 0))
def haul(event):
    """Wait between two transactions; what the first wrote stays, so that the second attempt must find it."""
    story = enter(event, HAUL)
    with event.tx() as tx:
        tx.execute(EFFECT_ONCE, effect(event, HAUL))
    time.sleep(story.get("hold", 0))
    with event.tx() as tx:
        tx.execute(EFFECT_ONCE, effect(event, HAUL))


@on(
    WEIGH.source,
    WEIGH.pattern,
    name=WEIGH.handler,
    rate=f"{RATE}/m",
    concurrency=PLACES,
    attempts=10,
    backoff=(0, 0),
)
def weigh(event, tx):
    """Take one of the places there are, and say when; nobody may find them all taken."""
    story = enter(event, WEIGH)
    if not any(tx.scalar(TAKE_PLACE, {"locks": LOCKS, "place": place}) for place in range(PLACES)):
        _write_down("crowded", event.event_id)
    _write_down("weighed", time.monotonic())
    tx.execute(EFFECT, effect(event, WEIGH))
    time.sleep(story.get("hold", 0))


@on(PAY.source, PAY.pattern, name=PAY.handler, attempts=10, backoff=(0, 0))
def pay(event, tx):
    """Charge somebody else's customer, once, and write that down."""
    story = enter(event, PAY)

    def charge(key):
        """Do as the other side does that knows no keys: the second charge is a second charge."""
        time.sleep(story.get("hold", 0) / 2)
        # in one write: no kill may leave a charge without its key
        _write_down("charges", f"{event.event_id} {key}")
        time.sleep(story.get("hold", 0) / 2)
        return {"charged": key}

    def find(key):
        return {"charged": key} if World(directory()).has_charged(key) else NEVER_HAPPENED

    event.step("charge", charge, recover=find)
    tx.execute(EFFECT, effect(event, PAY))


def _write_down(journal, what):
    with (directory() / journal).open("a") as lines:
        lines.write(f"{what}\n")
