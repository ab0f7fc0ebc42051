"""Ends events as a worker would, by SQL: what is open of them goes, and an outcome is there."""

from datetime import timedelta


def end_events(connection, status, events=None, *, handler="a", attempts=1, ago=timedelta(0)):
    """Have events (all, without any) end as done, dead or ignored, by one run; return their ids."""
    rows = connection.execute(
        """
        WITH chosen AS (SELECT id FROM hookonce.events WHERE %(events)s::bigint[] IS NULL OR id = ANY(%(events)s)),
        gone AS (DELETE FROM hookonce.queue WHERE event IN (SELECT id FROM chosen) RETURNING event, cycle),
        ended AS (UPDATE hookonce.runs SET is_last = false WHERE event IN (SELECT id FROM chosen) AND is_last
                   RETURNING event, cycle)
        INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, started_at, finished_at)
        SELECT id, %(handler)s, coalesce((SELECT max(cycle) FROM gone WHERE event = id),
                                         (SELECT max(cycle) + 1 FROM ended WHERE event = id), 1),
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


def put_into_state(connection, event, status=None, runs=()):
    """Leave an event as workers would; `runs` are (handler, status, attempts), open ones are due tomorrow."""
    if runs or status not in {None, "received", "held"}:
        kept = status in {"received", "held"}
        connection.execute("DELETE FROM hookonce.queue WHERE event = %s AND NOT %s", [event, kept])
    for n, (handler, state, attempts) in enumerate(runs, start=1):
        if state in {"waiting", "running"}:
            _open(connection, event, n, handler, attempts, is_running=state == "running")
        else:
            _outcome(connection, event, handler, state, attempts)
    is_open = any(state in {"waiting", "running"} for _, state, _ in runs)
    if status in {"waiting", "running"} and not is_open:
        _open(connection, event, 9, "other", 1, is_running=status == "running")
    elif status == "held":
        connection.execute("UPDATE hookonce.queue SET waits = 'held' WHERE event = %s", [event])
    elif status in {"done", "dead", "ignored"} and not any(state == status for _, state, _ in runs):
        _outcome(connection, event, "", status, 0)


def fail(connection, event, error, *, handler="shop.credit", attempt=1, **more):
    """Note a failed attempt; `more` are other columns."""
    row = {"event": event, "handler": handler, "cycle": 1, "attempt": attempt, "error": error, **more}
    columns, values = ", ".join(row), ", ".join(["%s"] * len(row))
    connection.execute(f"INSERT INTO hookonce.failures ({columns}) VALUES ({values})", [*row.values()])  # noqa: S608


def _outcome(connection, event, handler, status, attempts):
    connection.execute(
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
        "VALUES (%s, %s, 1, %s, %s, now())",
        [event, handler, status, attempts],
    )


def _open(connection, event, n, handler, attempts, *, is_running):
    connection.execute(
        "WITH claimed AS (INSERT INTO hookonce.claims (token, lease_until, events, places) "
        "SELECT gen_random_uuid(), 'tomorrow', %(places)s, %(n)s WHERE %(is_running)s RETURNING token) "
        "INSERT INTO hookonce.queue (event, n, received_at, source, type, handler, attempts, due_at, token) "
        "SELECT id, %(number)s, received_at, source, type, %(handler)s, %(attempts)s, 'tomorrow', "
        "(SELECT token FROM claimed) FROM hookonce.events WHERE id = %(event)s",
        {
            "event": event,
            "places": [event],
            "n": [n],
            "number": n,
            "handler": handler,
            "attempts": attempts - is_running,
            "is_running": is_running,
        },
    )
