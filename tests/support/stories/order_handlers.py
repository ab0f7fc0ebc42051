"""Handlers of the story of order: one that keeps the newest, and one that does not."""

import os
import random
import time

from sqlalchemy import text

from hookonce import on

FAULTS = float(os.environ.get("STORY_FAULTS") or 0)
OWN = {"entity": ("$.data.object.id",), "version": "$.data.object.version"}


def save(event, tx):
    """Store a state as an everyday upsert does, and note that it was stored."""
    told = event.data["data"]["object"]
    state = {"id": told["id"], "version": told["n"], "handler": event._handler}  # noqa: SLF001
    tx.execute(
        text(
            "INSERT INTO states VALUES (:handler, :id, :version) "
            "ON CONFLICT (handler, id) DO UPDATE SET version = excluded.version"
        ),
        state,
    )
    tx.execute(text("INSERT INTO applied (handler, id, version) VALUES (:handler, :id, :version)"), state)
    time.sleep(random.expovariate(1000))
    if random.random() < FAULTS:  # noqa: S311  no secret
        raise LookupError("it passes")


@on("stripe", name="newest", stale="skip", attempts=50, backoff=(0, 0.2), **OWN)
def newest(event, tx):
    """Keep the newest."""
    save(event, tx)


@on("stripe", name="everyday", attempts=50, backoff=(0, 0.2))
def everyday(event, tx):
    """Keep what comes last."""
    save(event, tx)
