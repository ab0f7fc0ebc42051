"""Handlers that do what they can to a worker: end its process, commit behind its back, never return, leave threads.

Each that may say so writes its effect first. Of `innocent` it is known that nobody else's death may cost it an attempt.
"""

import os
import signal
import threading
import time

from sqlalchemy import text

from hookonce import on

SECONDS = 0.5
"""The time limit of those that hang."""
RETRIES = {"attempts": 2, "backoff": (0.1, 0.1)}
WROTE = text("INSERT INTO effects VALUES ('hostile', :event, :handler, :attempt, NULL)")
_FOR_EVER = 3600


def effect(event, tx):
    tx.execute(WROTE, {"event": event.event_id, "handler": event.type, "attempt": event.attempt})


@on("stripe", "innocent", name="innocent", **RETRIES)
def innocent(event, tx):
    effect(event, tx)
    time.sleep(0.002)


@on("stripe", "exits", name="exits", **RETRIES)
def exits(event, tx):
    effect(event, tx)
    os._exit(3)


@on("stripe", "is.killed", name="is_killed", **RETRIES)
def is_killed(event, tx):
    effect(event, tx)
    os.kill(os.getpid(), signal.SIGKILL)


@on("stripe", "commits", name="commits", **RETRIES)
def commits(event, tx):
    effect(event, tx)
    tx.connection.driver_connection.execute("COMMIT")


@on("stripe", "commits.and.dies", name="commits_and_dies", **RETRIES)
def commits_and_dies(event, tx):
    try:
        commits(event, tx)
    finally:
        os._exit(4)


@on("stripe", "hangs", name="hangs", timeout=SECONDS, **RETRIES)
def hangs(event, tx):
    effect(event, tx)
    time.sleep(_FOR_EVER)


@on("stripe", "refuses.to.end", name="refuses_to_end", timeout=SECONDS, **RETRIES)
def refuses_to_end(event, tx):
    effect(event, tx)
    for _ in range(400):
        try:
            time.sleep(0.05)
        except BaseException:  # noqa: BLE001, S112  as some libraries do
            continue


@on("stripe", "leaves.a.thread", name="leaves_a_thread", **RETRIES)
def leaves_a_thread(event, tx):
    effect(event, tx)
    threading.Thread(target=time.sleep, args=[60], daemon=True).start()
