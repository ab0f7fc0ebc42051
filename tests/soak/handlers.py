"""The handlers of a soak: all there are, and then in a hurry; and what does its commands."""

import time

from sqlalchemy import text

from tests.support.stories import all_handlers, hurried  # noqa: F401  in this order


def order(event, tx):
    """Order, and have that in hand for as long as the client says."""
    tx.execute(text("INSERT INTO ordered VALUES (:number)"), {"number": event.data["number"]})
    time.sleep(event.data["hold"])
    return {"ordered": event.data["number"]}
