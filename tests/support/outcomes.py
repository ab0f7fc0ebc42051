"""Ends events as a worker would, by SQL: what is open of them goes, and an outcome is there."""

from datetime import timedelta


def end_events(connection, status, events=None, *, handler="a", attempts=1, ago=timedelta(0)):
    """Have events (all, without any) end as done, dead or ignored, by one run; return their ids."""
    rows = connection.execute(
        """
        WITH chosen AS (SELECT id FROM hookonce.events WHERE %(events)s::bigint[] IS NULL OR id = ANY(%(events)s)),
        gone AS (DELETE FROM hookonce.queue WHERE event IN (SELECT id FROM chosen) RETURNING event, cycle),
        former AS (UPDATE hookonce.runs SET is_last = false WHERE event IN (SELECT id FROM chosen) AND is_last
                   RETURNING event, cycle)
        INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, started_at, finished_at)
        SELECT id, %(handler)s, coalesce((SELECT max(cycle) FROM gone WHERE event = id),
                                         (SELECT max(cycle) + 1 FROM former WHERE event = id), 1),
               %(status)s, %(attempts)s, now() - %(ago)s, now() - %(ago)s FROM chosen
        RETURNING event
        """,
        {
            "events": None if events is None else list(events),
            "handler": "" if status == "ignored" else handler,
            "status": status,
            "attempts": 0 if status == "ignored" else attempts,
            "ago": ago,
        },
    ).fetchall()
    return sorted(row[0] for row in rows)


def lose_events(connection, events=None):
    """Leave nothing of events (all, without any) but that they came."""
    for table in ("queue", "runs"):
        connection.execute(
            f"DELETE FROM hookonce.{table} WHERE %(events)s::bigint[] IS NULL OR event = ANY(%(events)s)",  # noqa: S608
            {"events": None if events is None else list(events)},
        )
