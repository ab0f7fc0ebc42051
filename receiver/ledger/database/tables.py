"""The schema of a ledger: every table, index, view and first row, as the one revision makes them.

Ids are compared by bytes (`COLLATE "C"`): two ids are the same event only if they are the same bytes. No status has a
CHECK constraint, which PostgreSQL would parse anew in every statement.
"""

import hashlib
import re

SCHEMA = """
-- Deliveries

-- Slim, long-lived, unpartitioned and updated by an erasure alone, because the unique key is what makes a duplicate
-- impossible.
CREATE TABLE hookonce.events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source text COLLATE "C" NOT NULL,
    provider text NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    type text NOT NULL,
    account text,
    fingerprint bytea NOT NULL,
    id_is_signed boolean NOT NULL,
    repeat_of bigint,
    received_at timestamptz NOT NULL DEFAULT now(),
    occurred_at timestamptz,
    is_test boolean NOT NULL DEFAULT false,
    keep_body boolean NOT NULL DEFAULT true,
    origin text,
    erased_at timestamptz,
    UNIQUE (source, event_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02, fillfactor = 100);
-- A bloom filter per 64 pages finds rare types and accounts among millions; an insert into new pages does not touch it.
CREATE INDEX events_received ON hookonce.events USING brin (
    received_at, provider text_bloom_ops (n_distinct_per_range = 32), type text_bloom_ops (n_distinct_per_range = 128),
    account text_bloom_ops (n_distinct_per_range = 2500)
) WITH (autosummarize = on, pages_per_range = 64);
-- A fingerprint lands anywhere, so after a checkpoint nearly every insert logs a whole page of this index: what is on
-- it, without its free space. Four bytes of hash instead of source and fingerprint, and pages that stay three quarters
-- empty, make that 2 KB instead of 6, for twice the disk. Repeats are left out: equal entries make a chain that grows.
CREATE INDEX events_repeat ON hookonce.events USING hash (fingerprint) WITH (fillfactor = 25)
    WHERE NOT id_is_signed AND repeat_of IS NULL;
CREATE INDEX events_repeat_of ON hookonce.events (repeat_of, id) WHERE repeat_of IS NOT NULL;

-- The signed part of each event whose sender's signature does not cover the bytes of the body.
CREATE TABLE hookonce.repeat_marks (
    source text COLLATE "C" NOT NULL,
    mark bytea NOT NULL,
    event bigint NOT NULL REFERENCES hookonce.events ON DELETE CASCADE,
    PRIMARY KEY (source, mark)
);
CREATE INDEX repeat_marks_event ON hookonce.repeat_marks (event);

-- Wide, and partitioned by day (`receiver.ledger.maintenance.partitions`), so that old days are dropped whole.
CREATE TABLE hookonce.bodies (
    event bigint NOT NULL,
    received_at timestamptz NOT NULL,
    url text NOT NULL,
    headers json NOT NULL,
    body bytea NOT NULL,
    is_element boolean NOT NULL,
    key_id text,
    traceparent text,
    PRIMARY KEY (event, received_at)
) PARTITION BY RANGE (received_at);

-- How often an event came again.
CREATE TABLE hookonce.redeliveries (
    event bigint PRIMARY KEY REFERENCES hookonce.events ON DELETE CASCADE,
    count integer NOT NULL
);

CREATE TABLE hookonce.conflicts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event bigint NOT NULL REFERENCES hookonce.events ON DELETE CASCADE,
    fingerprint bytea NOT NULL,
    first_at timestamptz NOT NULL DEFAULT now(),
    last_at timestamptz NOT NULL DEFAULT now(),
    deliveries integer NOT NULL DEFAULT 1,
    headers json NOT NULL,
    body bytea NOT NULL,
    key_id text,
    UNIQUE (event, fingerprint)
);

CREATE TABLE hookonce.rejected (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rejected_at timestamptz NOT NULL,
    source text NOT NULL,
    reason text NOT NULL,
    detail text NOT NULL,
    headers json NOT NULL,
    body_prefix bytea NOT NULL,
    key_id text
);

CREATE TABLE hookonce.rejections (
    source text NOT NULL,
    reason text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (source, reason)
) WITH (fillfactor = 50);

CREATE TABLE hookonce.quarantine (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    arrived_at timestamptz NOT NULL DEFAULT now(),
    key_id text NOT NULL,
    delivery bytea NOT NULL
);
CREATE INDEX quarantine_source ON hookonce.quarantine (source, id);

CREATE TABLE hookonce.handed_secrets (
    source text COLLATE "C" PRIMARY KEY,
    secret text,
    handed_at timestamptz NOT NULL DEFAULT now(),
    sealed bytea,
    key_id text
);

CREATE TABLE hookonce.secret_use (
    source text NOT NULL,
    slot integer NOT NULL,
    count bigint NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (source, slot)
) WITH (fillfactor = 50);

-- How far the list of a source's sender was compared with `events` (`receiver.ledger.maintenance.sender_api`). `since`,
-- `cursor` and `days` (entries by day) are of a pass under way, `seen_id` is the newest event before a redelivery.
CREATE TABLE hookonce.listings (
    source text COLLATE "C" PRIMARY KEY,
    created_at timestamptz NOT NULL,
    token uuid,
    lease_until timestamptz,
    due_at timestamptz NOT NULL,
    begun_at timestamptz,
    since timestamptz,
    cursor text NOT NULL DEFAULT '',
    days json NOT NULL DEFAULT '{}',
    checked_until timestamptz,
    asked_at timestamptz,
    problem text,
    failed_since timestamptz,
    gap text,
    probed_at timestamptz,
    seen_id bigint NOT NULL DEFAULT 0
);

CREATE TABLE hookonce.listed_days (
    source text COLLATE "C" NOT NULL,
    day date NOT NULL,
    listed bigint NOT NULL,
    PRIMARY KEY (source, day)
);

CREATE TABLE hookonce.missing_events (
    source text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    type text NOT NULL,
    listed_at timestamptz NOT NULL,
    found_at timestamptz NOT NULL,
    reference text NOT NULL,
    why text NOT NULL,
    tried_at timestamptz[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (source, event_id)
);

-- Subscriptions that end by themselves, and are renewed.
CREATE TABLE hookonce.subscriptions (
    source text COLLATE "C" NOT NULL,
    resource text NOT NULL,
    id text,
    handle text,
    expires_at timestamptz,
    due_at timestamptz NOT NULL,
    token uuid,
    lease_until timestamptz,
    made integer NOT NULL DEFAULT 0,
    remade_at timestamptz,
    problem text,
    failed_since timestamptz,
    PRIMARY KEY (source, resource)
);

-- Calls of senders' APIs in the current hour, by the reference of the key.
CREATE TABLE hookonce.api_calls (
    key text PRIMARY KEY,
    hour timestamptz NOT NULL,
    calls integer NOT NULL
);

-- Open runs

-- A row for each open run, or one without a handler for an event that no worker has met. No index knows of a column
-- that a claim writes, `handler` among them, so that PostgreSQL updates the row in its page. `cut_offs`: how often in a
-- row an attempt was given back since a connection went away: inside its handler, or, below 0, somewhere else.
CREATE TABLE hookonce.queue (
    event bigint NOT NULL,
    n smallint NOT NULL DEFAULT 0,
    received_at timestamptz NOT NULL,
    source text COLLATE "C" NOT NULL,
    type text NOT NULL,
    handler text COLLATE "C",
    cycle integer NOT NULL DEFAULT 1,
    attempts integer NOT NULL DEFAULT 0,
    cut_offs smallint NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL,
    waits text COLLATE "C",
    waiting_handler text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN waits IS NOT NULL THEN handler END) STORED,
    slot_at timestamptz,
    schedule text,
    token uuid,
    PRIMARY KEY (event, n)
) WITH (fillfactor = 40, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX queue_due ON hookonce.queue (due_at) WHERE waits IS NULL;
CREATE INDEX queue_waits ON hookonce.queue (waits, waiting_handler, event) WHERE waits IS NOT NULL;

-- Leases of workers: rows of `queue` (event and n) in the order in which they are started, under one lease.
CREATE TABLE hookonce.claims (
    token uuid PRIMARY KEY,
    lease_until timestamptz NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    events bigint[] NOT NULL,
    places smallint[] NOT NULL,
    slots integer NOT NULL DEFAULT 1,
    is_suspect boolean NOT NULL DEFAULT false,
    started_at timestamptz,
    handler text COLLATE "C"
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- A row stands for a transaction of Django's that is an attempt's: as long as it is there, the transaction can't be
-- committed or prepared. The end of the attempt deletes it, so nobody ever sees one. `SET CONSTRAINTS ALL IMMEDIATE`
-- asks early, and is asked again.
CREATE TABLE hookonce.guards (
    xact_id xid8 PRIMARY KEY DEFAULT pg_current_xact_id()
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
CREATE FUNCTION hookonce.refuse_commit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE callers text;
BEGIN
    IF NOT EXISTS (SELECT FROM hookonce.guards g WHERE g.xact_id = NEW.xact_id) THEN
        RETURN NULL;
    END IF;
    GET DIAGNOSTICS callers = PG_CONTEXT;
    IF strpos(callers, chr(10)) > 0 OR current_query() ~* '^ *set +constraints [^;]*;? *$' THEN
        SET CONSTRAINTS hookonce.guarded DEFERRED;
        UPDATE hookonce.guards g SET xact_id = g.xact_id WHERE g.xact_id = NEW.xact_id;
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the transaction is hookonce''s: return to commit it, raise to roll it back'
        USING ERRCODE = 'invalid_transaction_termination';
END $body$;
REVOKE ALL ON FUNCTION hookonce.refuse_commit() FROM PUBLIC;
CREATE CONSTRAINT TRIGGER guarded AFTER INSERT OR UPDATE ON hookonce.guards DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION hookonce.refuse_commit();
ALTER TABLE hookonce.guards ENABLE ALWAYS TRIGGER guarded;

CREATE TABLE hookonce.limits (
    handler text COLLATE "C" NOT NULL,
    key text NOT NULL,
    schedule text NOT NULL,
    head timestamptz NOT NULL,
    given_at timestamptz NOT NULL DEFAULT now(),
    has_queue boolean NOT NULL DEFAULT false,
    PRIMARY KEY (handler, key)
);

CREATE TABLE hookonce.limit_places (
    handler text COLLATE "C" NOT NULL,
    event bigint NOT NULL,
    key text NOT NULL,
    token uuid NOT NULL,
    PRIMARY KEY (handler, event)
);

CREATE TABLE hookonce.breakers (
    handler text COLLATE "C" PRIMARY KEY,
    failures integer NOT NULL,
    error text NOT NULL,
    opened_at timestamptz,
    try_at timestamptz,
    tries integer NOT NULL DEFAULT 0,
    trying bigint
);

CREATE TABLE hookonce.pauses (
    kind text NOT NULL,
    name text NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, name)
);

-- Outcomes

-- A row per cycle of a run; without a handler for events that no handler takes, or that can't be read.
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
    issue text COLLATE "C",
    PRIMARY KEY (event, handler, cycle)
);
CREATE INDEX runs_dead ON hookonce.runs (event) WHERE status = 'dead' AND is_last;
CREATE INDEX runs_discarded ON hookonce.runs (event) WHERE status = 'discarded' AND is_last;
CREATE INDEX runs_ignored ON hookonce.runs (event) WHERE status = 'ignored' AND is_last;
CREATE INDEX runs_finished ON hookonce.runs USING brin (finished_at) WITH (autosummarize = on);
CREATE INDEX runs_issue ON hookonce.runs (issue, event) WHERE issue IS NOT NULL AND is_last;

CREATE TABLE hookonce.failures (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event bigint NOT NULL REFERENCES hookonce.events ON DELETE CASCADE,
    handler text COLLATE "C" NOT NULL,
    cycle integer NOT NULL,
    attempt integer NOT NULL,
    started_at timestamptz,
    failed_at timestamptz NOT NULL DEFAULT now(),
    error text NOT NULL,
    traceback bytea,
    key_id text,
    issue text COLLATE "C",
    release text COLLATE "C"
);
CREATE INDEX failures_event ON hookonce.failures (event);
CREATE INDEX failures_issue ON hookonce.failures (issue, id) WHERE issue IS NOT NULL;

-- Failures of one handler at one place. `fixed_after`: since when the last release that failed has been there.
CREATE TABLE hookonce.issues (
    id text COLLATE "C" PRIMARY KEY,
    handler text COLLATE "C" NOT NULL,
    title text NOT NULL,
    first_seen timestamptz NOT NULL DEFAULT now(),
    first_release text NOT NULL,
    fixed_after timestamptz,
    ignored_until timestamptz,
    reopened_at timestamptz
);

CREATE TABLE hookonce.releases (
    name text COLLATE "C" PRIMARY KEY,
    first_seen timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE hookonce.run_logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event bigint NOT NULL,
    handler text COLLATE "C" NOT NULL,
    cycle integer NOT NULL,
    attempt integer NOT NULL,
    received_at timestamptz NOT NULL,
    lines bytea NOT NULL,
    key_id text
);
CREATE INDEX run_logs_event ON hookonce.run_logs (event);
CREATE INDEX run_logs_received_at ON hookonce.run_logs USING brin (received_at);

CREATE TABLE hookonce.steps (
    event bigint NOT NULL REFERENCES hookonce.events ON DELETE CASCADE,
    handler text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    state text NOT NULL,
    owner uuid NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    is_uncertain boolean NOT NULL DEFAULT false,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    note text,
    result bytea,
    key_id text,
    PRIMARY KEY (event, handler, name)
);
CREATE INDEX steps_stopped ON hookonce.steps (event) WHERE state = 'failed_final';

-- The newest version of each entity that a handler has done (`receiver.ledger.entities`); '' is no account. No index
-- knows of a column that is raised.
CREATE TABLE hookonce.entities (
    source text COLLATE "C" NOT NULL,
    entity text COLLATE "C" NOT NULL,
    account text COLLATE "C" NOT NULL,
    handler text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    event bigint NOT NULL,
    raised_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (source, entity, account, handler)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

-- What handlers wait for (`receiver.ledger.waits`): by the hash of source, type, place and value. A wait that has ended
-- has the event that came, or none in time.
CREATE TABLE hookonce.waits (
    event bigint NOT NULL REFERENCES hookonce.events ON DELETE CASCADE,
    handler text COLLATE "C" NOT NULL,
    cycle integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    source text COLLATE "C" NOT NULL,
    type text NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    until timestamptz NOT NULL,
    ended_at timestamptz,
    answer bigint,
    PRIMARY KEY (event, handler, cycle, name)
);
CREATE INDEX waits_open ON hookonce.waits (key) WHERE ended_at IS NULL;

-- The first event of each key that came.
CREATE TABLE hookonce.arrivals (
    key bytea PRIMARY KEY,
    event bigint NOT NULL REFERENCES hookonce.events ON DELETE CASCADE,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX arrivals_event ON hookonce.arrivals (event);
CREATE INDEX arrivals_at ON hookonce.arrivals (at);

-- What workers note, since when, and how long handlers have waited for it at most.
CREATE TABLE hookonce.awaited (
    source text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    place text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    longest interval,
    PRIMARY KEY (source, type, place)
);

-- States

CREATE VIEW hookonce.event_states AS
SELECT e.id, e.source, e.provider, e.event_id, e.type, e.account, e.fingerprint, e.id_is_signed, e.repeat_of,
       e.received_at, e.occurred_at, e.is_test, e.keep_body, e.origin,
       CASE WHEN open.number > 0 THEN
                CASE WHEN open.is_running THEN 'running' WHEN open.is_held THEN 'held'
                     WHEN open.is_new THEN 'received' ELSE 'waiting' END
            WHEN ended.is_dead THEN 'dead' WHEN ended.is_done THEN 'done' WHEN ended.is_discarded THEN 'discarded'
            WHEN ended.is_ignored THEN 'ignored' ELSE 'lost' END AS status,
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
           bool_or(r.status = 'discarded') AS is_discarded, bool_or(r.status = 'ignored') AS is_ignored
    FROM hookonce.runs r WHERE r.event = e.id AND r.is_last) AS ended
LEFT JOIN hookonce.redeliveries again ON again.event = e.id;

CREATE VIEW hookonce.run_states AS
SELECT q.event, q.handler, CASE WHEN q.token IS NOT NULL THEN 'running' ELSE 'waiting' END AS status,
       q.attempts + (q.token IS NOT NULL)::int AS attempts, q.cycle,
       CASE WHEN q.token IS NOT NULL THEN c.lease_until ELSE q.due_at END AS due_at, q.waits, q.slot_at, q.schedule,
       q.token, c.lease_until, c.made_at AS started_at, NULL::timestamptz AS finished_at, NULL::json AS result,
       NULL::bytea AS sealed_result, NULL::text AS key_id, q.n, q.cut_offs
FROM hookonce.queue q LEFT JOIN hookonce.claims c ON c.token = q.token WHERE q.handler IS NOT NULL
UNION ALL
SELECT event, handler, status, attempts, cycle, NULL, NULL, NULL, NULL, NULL, NULL, started_at, finished_at, result,
       sealed_result, key_id, NULL, 0
FROM hookonce.runs WHERE is_last AND handler <> '';

-- Commands

CREATE TABLE hookonce.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    who text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    detail json NOT NULL
);

CREATE TABLE hookonce.api_tokens (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    hash bytea NOT NULL UNIQUE,
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz
);

CREATE TABLE hookonce.idempotency (
    scope text NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    state text NOT NULL DEFAULT 'completed',
    owner uuid,
    attempt integer NOT NULL DEFAULT 1,
    is_uncertain boolean NOT NULL DEFAULT false,
    started_at timestamptz NOT NULL DEFAULT now(),
    lease_until timestamptz,
    finished_at timestamptz,
    expires_at timestamptz NOT NULL DEFAULT now() + interval '24 hours',
    status integer,
    headers json,
    body bytea,
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_expires ON hookonce.idempotency (expires_at);
CREATE INDEX idempotency_open ON hookonce.idempotency (started_at) WHERE state = 'in_progress';

CREATE TABLE hookonce.bulk_replays (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    who text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    filter json NOT NULL,
    rate real,
    matched integer NOT NULL,
    replayed integer NOT NULL DEFAULT 0,
    left_alone integer NOT NULL DEFAULT 0,
    last_event bigint NOT NULL DEFAULT 0,
    until_event bigint NOT NULL,
    driver text,
    driven_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bulk_replays_open ON hookonce.bulk_replays (id) WHERE ended_at IS NULL;

CREATE TABLE hookonce.bulk_steps (
    bulk bigint NOT NULL REFERENCES hookonce.bulk_replays ON DELETE CASCADE,
    last_event bigint NOT NULL,
    events bigint[] NOT NULL,
    done integer NOT NULL DEFAULT 0,
    dead integer NOT NULL DEFAULT 0,
    checked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (bulk, last_event)
);
CREATE INDEX bulk_steps_open ON hookonce.bulk_steps (checked_at) WHERE events <> '{}';

-- Figures and alerts

CREATE TABLE hookonce.activity (
    minutes smallint NOT NULL,
    at timestamptz NOT NULL,
    source text COLLATE "C" NOT NULL,
    what text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (minutes, at, source, what)
);

CREATE TABLE hookonce.event_counts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source text COLLATE "C" NOT NULL,
    what text NOT NULL,
    count bigint NOT NULL
);

-- Slices of ids in which events are lost, and how far they are searched (`receiver.ledger.maintenance.lost_events`).
CREATE TABLE hookonce.lost_slices (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slice bigint NOT NULL,
    source text COLLATE "C" NOT NULL,
    what text NOT NULL,
    count bigint NOT NULL,
    first_at timestamptz
);

CREATE TABLE hookonce.batch_counts (
    handler text COLLATE "C" PRIMARY KEY,
    batches bigint NOT NULL,
    events bigint NOT NULL,
    halvings bigint NOT NULL,
    error text
) WITH (fillfactor = 50);

CREATE TABLE hookonce.alerts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    subject text NOT NULL,
    detail text NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz
);
CREATE UNIQUE INDEX alerts_open ON hookonce.alerts (kind, subject) WHERE ended_at IS NULL;

-- When the sweep looked at the clock last, and since when nothing is pruned because it leapt
-- (`receiver.ledger.maintenance.steady_clock`).
CREATE TABLE hookonce.clock (
    is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one),
    looked_at timestamptz NOT NULL,
    held_since timestamptz
);

CREATE TABLE hookonce.watching (
    evaluated_at timestamptz NOT NULL,
    since timestamptz NOT NULL
);
INSERT INTO hookonce.watching VALUES ('epoch', 'epoch');

CREATE TABLE hookonce.handlers (
    handler text COLLATE "C" NOT NULL,
    place text NOT NULL,
    pattern text NOT NULL,
    attempts integer NOT NULL,
    timeout interval NOT NULL,
    batch integer,
    models json,
    announced_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (handler, place, pattern)
);

CREATE TABLE hookonce.handler_attempts (
    handler text COLLATE "C" NOT NULL,
    attempts integer NOT NULL,
    announced_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (handler, attempts)
);

CREATE TABLE hookonce.worker_slots (
    worker uuid PRIMARY KEY,
    name text NOT NULL,
    slots integer NOT NULL,
    busy integer NOT NULL,
    lost integer NOT NULL,
    attempts json NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now()
);

-- One row: which ledger this is, and the key of its marks in the dedup window, whose 244 random bits are PostgreSQL's.
CREATE TABLE hookonce.ledger (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    window_key bytea NOT NULL
        DEFAULT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')
);
INSERT INTO hookonce.ledger DEFAULT VALUES;
"""


def digest(script: str) -> str:
    """Return the digest of what an SQL script makes: its comments and line breaks do not count."""
    return hashlib.sha256(" ".join(re.sub("--.*", "", script).split()).encode()).hexdigest()[:12]


DIGEST = digest(SCHEMA)
"""The id of the revision that makes this schema."""
