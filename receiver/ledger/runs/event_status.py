"""What an event's status and due time are by its runs, and how events are locked before these change."""

from hookonce.receiver.ledger.states import EventStatus, RunStatus

LOCK_EVENTS = "SELECT id FROM hookonce.events WHERE id = ANY(%s) ORDER BY id FOR UPDATE"

# Status and due time of events follow from their runs: running > waiting > dead > done; parked are those whose open
# runs all are, and where only some are, the others say when it is due. An event of a paused source is parked anew by
# the next claim that meets it. Event by event, whatever the planner thinks of the table: it may have been empty when
# the plan was made.
DERIVE_EVENT_STATUS = f"""
UPDATE hookonce.events SET status = d.status, due_at = d.due_at, parked = d.parked
FROM unnest(%(events)s::bigint[]) AS t (event), LATERAL (
    SELECT coalesce(min(due_at) FILTER (WHERE parked IS NULL), min(due_at)) AS due_at,
           CASE WHEN bool_and(parked IS NOT NULL) FILTER (WHERE due_at IS NOT NULL) THEN min(parked) END AS parked,
           CASE WHEN bool_or(status = '{RunStatus.RUNNING}' OR token IS NOT NULL) THEN '{EventStatus.RUNNING}'
                WHEN bool_or(status = '{RunStatus.WAITING}') THEN '{EventStatus.WAITING}'
                WHEN bool_or(status = '{RunStatus.DEAD}') THEN '{EventStatus.DEAD}'
                ELSE '{EventStatus.DONE}' END AS status
    FROM hookonce.runs WHERE runs.event = t.event HAVING count(*) > 0
) AS d
WHERE id = t.event
"""  # noqa: S608  constants
