"""The first schema: ledger, bodies, runs and what is kept beside them."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = """
CREATE TABLE hookonce.events (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source       text COLLATE "C" NOT NULL,
    provider     text NOT NULL,
    event_id     text COLLATE "C" NOT NULL,
    type         text NOT NULL,
    account      text,
    fingerprint  bytea NOT NULL,
    id_is_signed boolean NOT NULL,
    repeat_of    bigint,
    status       text NOT NULL CHECK (status IN
                 ('received', 'running', 'waiting', 'done', 'dead', 'ignored', 'held')),
    due_at       timestamptz,
    received_at  timestamptz NOT NULL DEFAULT now(),
    occurred_at  timestamptz,
    deliveries   integer NOT NULL DEFAULT 1,
    CONSTRAINT events_source_event_id_key UNIQUE (source, event_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02, fillfactor = 90);
CREATE INDEX events_due ON hookonce.events (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX events_repeat ON hookonce.events (source, fingerprint) WHERE NOT id_is_signed;
CREATE INDEX events_received ON hookonce.events USING brin (received_at) WITH (autosummarize = on);
CREATE INDEX events_attention ON hookonce.events (status, id) WHERE status IN ('waiting', 'dead', 'held');

CREATE TABLE hookonce.bodies (
    event       bigint NOT NULL,
    received_at timestamptz NOT NULL,
    url         text NOT NULL,
    headers     json NOT NULL,
    body        bytea NOT NULL,
    is_element  boolean NOT NULL,
    CONSTRAINT bodies_pkey PRIMARY KEY (event, received_at)
) PARTITION BY RANGE (received_at);

CREATE TABLE hookonce.runs (
    event       bigint NOT NULL REFERENCES hookonce.events (id) ON DELETE CASCADE,
    handler     text COLLATE "C" NOT NULL,
    status      text NOT NULL CHECK (status IN ('waiting', 'running', 'done', 'dead')),
    attempts    integer NOT NULL DEFAULT 0,
    cycle       integer NOT NULL DEFAULT 1,
    due_at      timestamptz,
    token       uuid,
    lease_until timestamptz,
    result      json,
    started_at  timestamptz,
    finished_at timestamptz,
    CONSTRAINT runs_pkey PRIMARY KEY (event, handler)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02, fillfactor = 80);

CREATE TABLE hookonce.failures (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event     bigint NOT NULL REFERENCES hookonce.events (id) ON DELETE CASCADE,
    handler   text COLLATE "C" NOT NULL,
    cycle     integer NOT NULL,
    attempt   integer NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT now(),
    error     text NOT NULL
);
CREATE INDEX ix_failures_event ON hookonce.failures (event);

CREATE TABLE hookonce.conflicts (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event       bigint NOT NULL REFERENCES hookonce.events (id) ON DELETE CASCADE,
    fingerprint bytea NOT NULL,
    first_at    timestamptz NOT NULL DEFAULT now(),
    last_at     timestamptz NOT NULL DEFAULT now(),
    deliveries  integer NOT NULL DEFAULT 1,
    headers     json NOT NULL,
    body        bytea NOT NULL,
    CONSTRAINT conflicts_event_fingerprint_key UNIQUE (event, fingerprint)
);

CREATE TABLE hookonce.rejected (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rejected_at timestamptz NOT NULL,
    source      text NOT NULL,
    reason      text NOT NULL,
    detail      text NOT NULL,
    headers     json NOT NULL,
    body_prefix bytea NOT NULL
);

CREATE TABLE hookonce.rejections (
    source text NOT NULL,
    reason text NOT NULL,
    count  bigint NOT NULL,
    CONSTRAINT rejections_pkey PRIMARY KEY (source, reason)
) WITH (fillfactor = 50);

CREATE TABLE hookonce.audit (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now(),
    who     text NOT NULL,
    action  text NOT NULL,
    subject text NOT NULL,
    detail  json NOT NULL
);

CREATE TABLE hookonce.pauses (
    kind  text NOT NULL CHECK (kind IN ('source', 'handler')),
    name  text NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pauses_pkey PRIMARY KEY (kind, name)
);
"""


def upgrade() -> None:
    """Create everything; the daily partitions are `receiver.ledger.maintenance.partitions`'s."""
    op.execute(_TABLES)


def downgrade() -> None:
    """Drop everything, bodies and ledger included."""
    op.execute(
        "DROP TABLE hookonce.pauses, hookonce.audit, hookonce.rejections, hookonce.rejected, "
        "hookonce.conflicts, hookonce.failures, hookonce.runs, hookonce.bodies, hookonce.events"
    )
