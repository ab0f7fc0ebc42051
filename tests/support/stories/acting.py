"""What handlers do besides taking effect: each writes down that it was entered, and does what its event says.

An event's `story` says what goes wrong: {"fail": 1} fails the first attempt, {"give_up": true},
{"later": 1} asks to come back once, {"kill": 1} is out of memory when it is entered the first time, {"kill": true}
every time, {"wait": true} stays inside until there is a file `go-<event id>-<entry>`, which says how often it was
entered; {"commit": true} ends its transaction behind our back, and {"die": true} the process thereafter,
{"roll_back": 1} rolls it back at the first attempt, as a session does whose flush fails; {"by": "mail"} says that it
is about one handler only.
"""

import contextlib
import json
import os
import signal
import time
from hashlib import sha256
from pathlib import Path

import psycopg

from hookonce import GiveUp, RetryLater

ENOUGH = 30.0


def enter(event, plan):
    """Write down that the handler was entered; give the story, if it is about this handler."""
    story = story_of(event)
    if story.get("by", plan.handler) != plan.handler:
        story = {}
    later = event.id not in POSTPONED and story.get("later")
    note(event, plan.handler, counted=not later)
    return story


def effect(event, plan):
    return {
        "source": event.source,
        "event_id": event.event_id,
        "handler": plan.handler,
        "attempt": event.attempt,
        "digest": sha256(event.raw).hexdigest(),
    }


POSTPONED = set()


def suffer(event, story, tx):
    """Go wrong as the event's story wants; the effect is written already and has to be rolled back."""
    if story.get("wait"):
        wait_for(directory() / f"go-{event.event_id}-{times_entered(event)}")
    if (kill := story.get("kill")) and (kill is True or times_entered(event) <= kill):
        os.kill(os.getpid(), signal.SIGKILL)
    if story.get("later") and event.id not in POSTPONED:
        POSTPONED.add(event.id)
        raise RetryLater(0)
    if story.get("give_up"):
        raise GiveUp("the story ends here")
    if story.get("commit"):
        driver = tx.connection.driver_connection
        driver.execute("SAVEPOINT before")
        with contextlib.suppress(psycopg.Error):
            driver.execute("SELECT 1; COMMIT AND CHAIN; SAVEPOINT before")
        driver.execute("ROLLBACK TO before")
        driver.execute("COMMIT AND CHAIN")
    if story.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if event.attempt <= story.get("roll_back", 0):
        tx.get_transaction().rollback()
    if event.attempt <= max(story.get("fail", 0), story.get("roll_back", 0)):
        raise ValueError(f"fails at attempt {event.attempt}")


def story_of(event):
    data = event.data if isinstance(event.data, dict) else {}
    return data.get("story") or {}


def note(event, handler, *, counted):
    """Write down, outside any transaction, that a handler was entered."""
    entry = [event.source, event.event_id, handler, event.attempt, counted]
    with (directory() / "entries").open("a") as journal:
        journal.write(json.dumps([entry, event.idempotency_key]) + "\n")


def times_entered(event):
    """How often a handler was entered for an event so far."""
    lines = (directory() / "entries").read_text().splitlines()
    entries = [json.loads(line)[0][:2] for line in lines if line.endswith("]")]
    return entries.count([event.source, event.event_id])


def wait_for(path):
    until = time.monotonic() + ENOUGH
    while not path.exists():
        if time.monotonic() > until:
            raise TimeoutError(path.name)
        time.sleep(0.005)


def directory():
    return Path(os.environ["STORY_DIRECTORY"])
