"""The handler of the story of waits: an order that waits for its check."""

from datetime import timedelta

from sqlalchemy import text

from hookonce import on


@on(
    "stripe",
    "order.created",
    name="fulfil",
    awaits={"check": ("stripe", "check.completed", "$.data.object.sha")},
    attempts=50,
    backoff=(0, 0.2),
)
def fulfil(event, tx):
    """Keep what was waited for, and when that was."""
    sha = event.data["data"]["object"]["sha"]
    check = event.wait("check", sha, timeout=timedelta(days=3))
    values = {"sha": sha, "answer": check and check["data"]["object"]["answer"]}
    tx.execute(text("INSERT INTO fulfilled (sha, answer) VALUES (:sha, :answer)"), values)
