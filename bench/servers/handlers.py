"""The handlers of the benchmark: one database write each, under a primary key that would catch a second run."""

import time
from typing import Any

from sqlalchemy import Connection, text

from hookonce import on

_WRITE = text("INSERT INTO effects (event) VALUES (:event)")


@on("github", "push", name="write")
def write(event: Any, tx: Connection) -> None:  # noqa: ANN401
    """Make one write."""
    tx.execute(_WRITE, {"event": event.id})


@on("github", "slow", name="slow")
def slow(event: Any, tx: Connection) -> None:  # noqa: ANN401
    """Take a second, then make one write."""
    time.sleep(1)
    tx.execute(_WRITE, {"event": event.id})


@on("github", "waits", name="waits")
def waits(event: Any, tx: Connection) -> None:  # noqa: ANN401
    """Wait for 200 ms, as for somebody else's API, then make one write."""
    time.sleep(0.2)
    tx.execute(_WRITE, {"event": event.id})
