"""What the operator's desk keeps: quarantine, tokens, bulk replays, activity, alerts; bodies may be encrypted."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_TABLES = """
ALTER TABLE hookonce.bodies ADD COLUMN key_id text, ADD COLUMN traceparent text;
ALTER TABLE hookonce.conflicts ADD COLUMN key_id text;
ALTER TABLE hookonce.rejected ADD COLUMN key_id text;

-- Every change of an event moves its due time, which is indexed: room on its page would not make one of them HOT.
ALTER TABLE hookonce.events SET (fillfactor = 100);

-- A bloom filter per 64 pages finds rare types and accounts among millions; an insert into new pages does not touch it.
DROP INDEX hookonce.events_received;
CREATE INDEX events_received ON hookonce.events USING brin (
    received_at, provider text_bloom_ops (n_distinct_per_range = 32), type text_bloom_ops (n_distinct_per_range = 128),
    account text_bloom_ops (n_distinct_per_range = 2500)
) WITH (autosummarize = on, pages_per_range = 64);

CREATE TABLE hookonce.quarantine (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source     text COLLATE "C" NOT NULL,
    reason     text NOT NULL,
    arrived_at timestamptz NOT NULL DEFAULT now(),
    key_id     text NOT NULL,
    delivery   bytea NOT NULL
);
CREATE INDEX quarantine_source ON hookonce.quarantine (source, id);

CREATE TABLE hookonce.api_tokens (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL,
    hash       bytea NOT NULL,
    scopes     text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    CONSTRAINT api_tokens_name_key UNIQUE (name),
    CONSTRAINT api_tokens_hash_key UNIQUE (hash)
);

CREATE TABLE hookonce.idempotency (
    token       text NOT NULL,
    key         text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    status      integer,
    headers     json,
    body        bytea,
    CONSTRAINT idempotency_pkey PRIMARY KEY (token, key)
);
CREATE INDEX idempotency_started ON hookonce.idempotency (started_at);

CREATE TABLE hookonce.bulk_replays (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    who         text NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    ended_at    timestamptz,
    filter      json NOT NULL,
    rate        real,
    matched     integer NOT NULL,
    replayed    integer NOT NULL DEFAULT 0,
    left_alone  integer NOT NULL DEFAULT 0,
    last_event  bigint NOT NULL DEFAULT 0,
    until_event bigint NOT NULL,
    driver      text,
    driven_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bulk_replays_open ON hookonce.bulk_replays (id) WHERE ended_at IS NULL;

CREATE INDEX runs_finished ON hookonce.runs USING brin (finished_at) WITH (autosummarize = on);

CREATE TABLE hookonce.bulk_steps (
    bulk       bigint NOT NULL REFERENCES hookonce.bulk_replays (id) ON DELETE CASCADE,
    last_event bigint NOT NULL,
    events     bigint[] NOT NULL,
    done       integer NOT NULL DEFAULT 0,
    dead       integer NOT NULL DEFAULT 0,
    checked_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT bulk_steps_pkey PRIMARY KEY (bulk, last_event)
);
CREATE INDEX bulk_steps_open ON hookonce.bulk_steps (checked_at) WHERE events <> '{}';

CREATE TABLE hookonce.activity (
    minutes smallint NOT NULL,
    at      timestamptz NOT NULL,
    source  text COLLATE "C" NOT NULL,
    what    text NOT NULL,
    count   bigint NOT NULL,
    CONSTRAINT activity_pkey PRIMARY KEY (minutes, at, source, what)
);

CREATE TABLE hookonce.event_counts (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source text COLLATE "C" NOT NULL,
    what   text NOT NULL,
    count  bigint NOT NULL
);
INSERT INTO hookonce.event_counts (source, what, count)
SELECT source, 'events', count(*) FROM hookonce.events GROUP BY source
UNION ALL SELECT source, 'ignored', count(*) FROM hookonce.events WHERE status = 'ignored' GROUP BY source
UNION ALL SELECT '', 'until', max(id) FROM hookonce.events HAVING max(id) IS NOT NULL;

CREATE TABLE hookonce.alerts (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind     text NOT NULL,
    subject  text NOT NULL,
    detail   text NOT NULL,
    since    timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz
);
CREATE UNIQUE INDEX alerts_open ON hookonce.alerts (kind, subject) WHERE ended_at IS NULL;

CREATE TABLE hookonce.handlers (
    handler      text COLLATE "C" NOT NULL,
    place        text NOT NULL,
    pattern      text NOT NULL,
    attempts     integer NOT NULL,
    timeout      interval NOT NULL,
    announced_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT handlers_pkey PRIMARY KEY (handler, place, pattern)
);

CREATE TABLE hookonce.watching (
    evaluated_at timestamptz NOT NULL,
    since        timestamptz NOT NULL
);
INSERT INTO hookonce.watching VALUES ('epoch', 'epoch');
"""


def upgrade() -> None:
    """Add tables and nullable columns; nothing that is there is rewritten, the ledger is counted once."""
    op.execute(_TABLES)


def downgrade() -> None:
    """Drop them; bodies that were encrypted can't be read by an older version."""
    op.execute(
        "DROP TABLE hookonce.handlers, hookonce.watching, hookonce.alerts, hookonce.event_counts, "
        "hookonce.activity, hookonce.bulk_steps, hookonce.bulk_replays, hookonce.idempotency"
    )
    op.execute("DROP TABLE hookonce.api_tokens, hookonce.quarantine")
    op.execute("DROP INDEX hookonce.runs_finished; ALTER TABLE hookonce.events SET (fillfactor = 90)")
    op.execute("DROP INDEX hookonce.events_received")
    op.execute(
        "CREATE INDEX events_received ON hookonce.events USING brin (received_at) WITH (autosummarize = on)"
    )
    op.execute(
        "ALTER TABLE hookonce.rejected DROP COLUMN key_id; ALTER TABLE hookonce.conflicts DROP COLUMN key_id; "
        "ALTER TABLE hookonce.bodies DROP COLUMN key_id, DROP COLUMN traceparent"
    )
