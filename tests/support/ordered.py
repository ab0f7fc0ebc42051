"""Events of orders, each with a version, and a handler that notes which versions it was given."""

import json

from sqlalchemy import text

OWN = {"stale": "skip", "entity": ("$.order.id",), "version": "$.v"}


def order(event_id, version, of="o1", **changes):
    """An event of an order as the test deliveries have it."""
    return {"event_id": event_id, "body": json.dumps({"order": {"id": of}, "v": version}).encode(), **changes}


def deliver(inbox, *orders):
    return [inbox.deliver(each.pop("event_id"), **({"provider": "acme"} | each))[0] for each in orders]


def save(event, tx):
    tx.execute(
        text("INSERT INTO effects VALUES (:event)"), {"event": f"{event.subject.version:03} {event.event_id}"}
    )
