"""Three tables in the place of two: what came, what is still to be done, and what became of it.

`events` is never updated any more, `queue` holds what is open, `runs` a row for each cycle that has ended, and `claims`
what workers have leased. Views say what state events and runs are in.
"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_TABLES = """
CREATE TABLE hookonce.queue (
    event bigint NOT NULL,
    n smallint NOT NULL DEFAULT 0,
    received_at timestamptz NOT NULL,
    source text COLLATE "C" NOT NULL,
    type text NOT NULL,
    handler text COLLATE "C",
    cycle integer NOT NULL DEFAULT 1,
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL,
    waits text COLLATE "C",
    slot_at timestamptz,
    schedule text,
    token uuid,
    CONSTRAINT queue_pkey PRIMARY KEY (event, n)
) WITH (fillfactor = 40, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX queue_due ON hookonce.queue (due_at) WHERE waits IS NULL;
CREATE INDEX queue_waits ON hookonce.queue (waits, handler, event) WHERE waits IS NOT NULL;
CREATE TABLE hookonce.claims (
    token uuid NOT NULL,
    lease_until timestamptz NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    events bigint[] NOT NULL,
    places smallint[] NOT NULL,
    slots integer NOT NULL DEFAULT 1,
    is_alone boolean NOT NULL DEFAULT false,
    handler text COLLATE "C",
    CONSTRAINT claims_pkey PRIMARY KEY (token)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
CREATE TABLE hookonce.redeliveries (
    event bigint NOT NULL CONSTRAINT redeliveries_pkey PRIMARY KEY
        CONSTRAINT redeliveries_event_fkey REFERENCES hookonce.events (id) ON DELETE CASCADE,
    count integer NOT NULL
);
ALTER TABLE hookonce.steps DROP CONSTRAINT steps_run_fkey;
ALTER TABLE hookonce.runs RENAME TO former_runs;
ALTER TABLE hookonce.former_runs RENAME CONSTRAINT runs_pkey TO former_runs_pkey;
ALTER INDEX hookonce.runs_finished RENAME TO former_runs_finished;
CREATE TABLE hookonce.runs (
    event bigint NOT NULL,
    handler text COLLATE "C" NOT NULL,
    cycle integer NOT NULL,
    status text NOT NULL,
    is_last boolean NOT NULL DEFAULT true,
    attempts integer NOT NULL,
    started_at timestamptz,
    finished_at timestamptz NOT NULL,
    result json,
    sealed_result bytea,
    key_id text,
    CONSTRAINT runs_pkey PRIMARY KEY (event, handler, cycle)
);
CREATE INDEX runs_dead ON hookonce.runs (event) WHERE status = 'dead' AND is_last;
CREATE INDEX runs_ignored ON hookonce.runs (event) WHERE status = 'ignored' AND is_last;
CREATE INDEX runs_finished ON hookonce.runs USING brin (finished_at);
ALTER TABLE hookonce.steps ADD CONSTRAINT steps_event_fkey
    FOREIGN KEY (event) REFERENCES hookonce.events (id) ON DELETE CASCADE;
DROP TABLE hookonce.marks;
CREATE TABLE hookonce.marks (
    event bigint NOT NULL,
    n smallint NOT NULL,
    token uuid NOT NULL,
    CONSTRAINT marks_pkey PRIMARY KEY (event, n, token)
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE hookonce.event_counts ADD COLUMN slice bigint, ADD COLUMN first_at timestamptz;
DELETE FROM hookonce.event_counts WHERE what NOT IN ('events', 'until');
DELETE FROM hookonce.batches WHERE token IS NOT NULL;
ALTER TABLE hookonce.batches DROP COLUMN token, DROP COLUMN lease_until
"""

_MOVE = """
INSERT INTO hookonce.queue (event, n, received_at, source, type, handler, cycle, attempts, due_at, waits, slot_at, schedule)
SELECT e.id, row_number() OVER (PARTITION BY e.id ORDER BY r.handler) - 1, e.received_at, e.source, e.type, r.handler,
       r.cycle, r.attempts, coalesce(r.due_at, now()),
       CASE WHEN e.parked = 'source' THEN 'source:' || e.source ELSE r.parked END, r.slot_at, r.schedule
FROM hookonce.former_runs r JOIN hookonce.events e ON e.id = r.event WHERE r.status IN ('waiting', 'running')
UNION ALL
SELECT id, 0, received_at, source, type, NULL, 1, 0, coalesce(due_at, now()),
       CASE WHEN status = 'held' THEN 'held' WHEN parked = 'source' THEN 'source:' || source END, NULL, NULL
FROM hookonce.events e WHERE status IN ('received', 'held');
INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, started_at, finished_at, result, sealed_result, key_id)
SELECT event, handler, cycle, status, attempts, started_at, coalesce(finished_at, now()), result, sealed_result, key_id
FROM hookonce.former_runs WHERE status IN ('done', 'dead')
UNION ALL
SELECT id, '', 1, status, 0, NULL, received_at, NULL, NULL, NULL FROM hookonce.events e
WHERE status IN ('ignored', 'dead') AND NOT EXISTS (SELECT FROM hookonce.former_runs r WHERE r.event = e.id);
INSERT INTO hookonce.redeliveries (event, count) SELECT id, deliveries - 1 FROM hookonce.events WHERE deliveries > 1;
DROP TABLE hookonce.former_runs;
DROP INDEX hookonce.events_due, hookonce.events_parked, hookonce.events_parked_received, hookonce.events_attention;
ALTER TABLE hookonce.events DROP COLUMN status, DROP COLUMN due_at, DROP COLUMN parked, DROP COLUMN deliveries
"""

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


def upgrade() -> None:
    """Make the tables, move what there is, and drop what events no longer say."""
    op.execute(_TABLES)
    op.execute(_MOVE)
    op.execute(EVENT_STATES)
    op.execute(RUN_STATES)


def downgrade() -> None:
    """Refuse: what has ended since knows its cycles, which the former tables can't hold."""
    raise NotImplementedError("a ledger with a queue can't be taken back; restore a dump of before")
