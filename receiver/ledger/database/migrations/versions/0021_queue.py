"""Three tables in the place of two: what came, what is still to be done, and what became of it.

`events` is never updated any more, `queue` holds what is open, `runs` a row for each cycle that has ended, and `claims`
what workers have leased. Views say what state events and runs are in.

A ledger that lives is brought here in steps, by `receiver.ledger.database.live_upgrade`; then this is the last but one.
"""

from alembic import context, op

from hookonce.receiver.ledger.database import engines, former_tables

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

EVENT_STATES = """
CREATE VIEW hookonce.event_states AS
SELECT e.id, e.source, e.provider, e.event_id, e.type, e.account, e.fingerprint, e.id_is_signed, e.repeat_of,
       e.received_at, e.occurred_at, e.is_test, e.keep_body,
       CASE WHEN open.number > 0 THEN
                CASE WHEN open.is_running THEN 'running' WHEN open.is_held THEN 'held'
                     WHEN open.is_new THEN 'received' ELSE 'waiting' END
            WHEN ended.is_dead THEN 'dead' WHEN ended.is_done THEN 'done' WHEN ended.is_ignored THEN 'ignored'
            ELSE 'lost' END AS status,
       open.due_at, open.waits, 1 + coalesce(again.count, 0) AS deliveries
FROM hookonce.events e
CROSS JOIN LATERAL (
    SELECT count(*) AS number, bool_or(q.token IS NOT NULL) AS is_running,
           coalesce(bool_or(q.waits = 'held'), false) AS is_held, bool_and(q.handler IS NULL) AS is_new,
           coalesce(min(q.due_at) FILTER (WHERE q.waits IS NULL),
                    min(q.due_at) FILTER (WHERE q.waits <> 'held')) AS due_at,
           CASE WHEN bool_and(q.waits IS NOT NULL) THEN min(q.waits) END AS waits
    FROM hookonce.queue q WHERE q.event = e.id) AS open
CROSS JOIN LATERAL (
    SELECT bool_or(r.status = 'dead') AS is_dead, bool_or(r.status = 'done') AS is_done,
           bool_or(r.status = 'ignored') AS is_ignored
    FROM hookonce.runs r WHERE r.event = e.id AND r.is_last) AS ended
LEFT JOIN hookonce.redeliveries again ON again.event = e.id
"""

RUN_STATES = """
CREATE VIEW hookonce.run_states AS
SELECT q.event, q.handler, CASE WHEN q.token IS NOT NULL THEN 'running' ELSE 'waiting' END AS status,
       q.attempts + (q.token IS NOT NULL)::int AS attempts, q.cycle,
       CASE WHEN q.token IS NOT NULL THEN c.lease_until ELSE q.due_at END AS due_at, q.waits, q.slot_at, q.schedule,
       q.token, c.lease_until, c.made_at AS started_at, NULL::timestamptz AS finished_at, NULL::json AS result,
       NULL::bytea AS sealed_result, NULL::text AS key_id, q.n
FROM hookonce.queue q LEFT JOIN hookonce.claims c ON c.token = q.token WHERE q.handler IS NOT NULL
UNION ALL
SELECT event, handler, status, attempts, cycle, NULL, NULL, NULL, NULL, NULL, NULL, started_at, finished_at, result,
       sealed_result, key_id, NULL
FROM hookonce.runs WHERE is_last AND handler <> ''
"""

SLICE_COUNTS = """
CREATE TABLE IF NOT EXISTS hookonce.slice_counts (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT slice_counts_pkey PRIMARY KEY,
    slice bigint NOT NULL,
    source text COLLATE "C" NOT NULL,
    what text NOT NULL,
    count bigint NOT NULL,
    first_at timestamptz
)
"""

# What may be paused, the code says (`receiver.ledger.reasons`).
PAUSES_UNCHECKED = "ALTER TABLE hookonce.pauses DROP CONSTRAINT IF EXISTS pauses_kind_check"


def upgrade() -> None:
    """Make the tables, and move what there is into them."""
    op.execute(SLICE_COUNTS)
    op.execute(PAUSES_UNCHECKED)
    connection = engines.raw(op.get_bind())
    if context.config.attributes.get("is_new"):
        former_tables.make_of_nothing(connection)
        for view in (EVENT_STATES, RUN_STATES):
            connection.execute(view.encode())
    else:
        former_tables.swap(connection, (EVENT_STATES, RUN_STATES))


def downgrade() -> None:
    """Refuse: the former tables can't hold what has ended since, with its cycles."""
    raise NotImplementedError("a ledger with a queue can't be taken back; restore a dump of before")
