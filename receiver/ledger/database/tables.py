"""The tables, as SQLAlchemy Core knows them; the migrations beside it create them.

`events` is the ledger: slim, long-lived, unpartitioned and never updated, because its unique key is what makes a
duplicate impossible. `queue` holds what is still to be done, `runs` what became of it. What state an event or a run is
in the views `event_states` and `run_states` say. `bodies` is wide and partitioned by day, so that old days are dropped
whole. Ids are compared by bytes (`COLLATE "C"`): two ids are the same event only if they are the same bytes.
"""

from sqlalchemy import (
    ARRAY,
    JSON,
    REAL,
    BigInteger,
    Boolean,
    Column,
    Computed,
    DateTime,
    Identity,
    Index,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.schema import ForeignKey

from hookonce.receiver.config.server_urls import USUAL_SCHEMA

metadata = MetaData(schema=USUAL_SCHEMA)

_bytewise = Text(collation="C")
_moment = DateTime(timezone=True)

events = Table(
    "events",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("source", _bytewise, nullable=False),
    Column("provider", Text, nullable=False),
    Column("event_id", _bytewise, nullable=False),
    Column("type", Text, nullable=False),
    Column("account", Text),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("id_is_signed", Boolean, nullable=False),
    Column("repeat_of", BigInteger),
    Column("received_at", _moment, nullable=False, server_default=text("now()")),
    Column("occurred_at", _moment),
    Column("is_test", Boolean, nullable=False, server_default=text("false")),
    Column("keep_body", Boolean, nullable=False, server_default=text("true")),
    UniqueConstraint("source", "event_id", name="events_source_event_id_key"),
    Index(
        "events_repeat",
        "fingerprint",
        postgresql_using="hash",
        postgresql_with={"fillfactor": 25},
        postgresql_where=text("NOT id_is_signed AND repeat_of IS NULL"),
    ),
    Index("events_repeat_of", "repeat_of", "id", postgresql_where=text("repeat_of IS NOT NULL")),
    Index("events_received", "received_at", "provider", "type", "account", postgresql_using="brin"),
)

repeat_marks = Table(
    "repeat_marks",
    metadata,
    Column("source", _bytewise, nullable=False),
    Column("mark", LargeBinary, nullable=False),
    Column("event", BigInteger, ForeignKey("hookonce.events.id", ondelete="CASCADE"), nullable=False),
    PrimaryKeyConstraint("source", "mark", name="repeat_marks_pkey"),
    Index("repeat_marks_event", "event"),
)

bodies = Table(
    "bodies",
    metadata,
    Column("event", BigInteger, nullable=False),
    Column("received_at", _moment, nullable=False),
    Column("url", Text, nullable=False),
    Column("headers", JSON, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("is_element", Boolean, nullable=False),
    Column("key_id", Text),
    Column("traceparent", Text),
    PrimaryKeyConstraint("event", "received_at", name="bodies_pkey"),
    postgresql_partition_by="RANGE (received_at)",
)

queue = Table(
    "queue",
    metadata,
    Column("event", BigInteger, nullable=False),
    Column("n", SmallInteger, nullable=False, server_default=text("0")),
    Column("received_at", _moment, nullable=False),
    Column("source", _bytewise, nullable=False),
    Column("type", Text, nullable=False),
    Column("handler", _bytewise),
    Column("cycle", Integer, nullable=False, server_default=text("1")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("due_at", _moment, nullable=False),
    Column("waits", _bytewise),
    Column(
        "waiting_handler", _bytewise, Computed("CASE WHEN waits IS NOT NULL THEN handler END", persisted=True)
    ),
    Column("slot_at", _moment),
    Column("schedule", Text),
    Column("token", Uuid),
    PrimaryKeyConstraint("event", "n", name="queue_pkey"),
    Index("queue_due", "due_at", postgresql_where=text("waits IS NULL")),
    Index("queue_waits", "waits", "waiting_handler", "event", postgresql_where=text("waits IS NOT NULL")),
    postgresql_with={"fillfactor": 40},
)
"""What is still to be done: a row for each open run, or one without a handler for an event that no worker has met.

No index knows of a column that a claim writes, `handler` among them, so that PostgreSQL updates the row in its page.
"""

claims = Table(
    "claims",
    metadata,
    Column("token", Uuid, nullable=False),
    Column("lease_until", _moment, nullable=False),
    Column("made_at", _moment, nullable=False, server_default=text("now()")),
    Column("events", ARRAY(BigInteger), nullable=False),
    Column("places", ARRAY(SmallInteger), nullable=False),
    Column("slots", Integer, nullable=False, server_default=text("1")),
    Column("is_alone", Boolean, nullable=False, server_default=text("false")),
    Column("started_at", _moment),
    Column("handler", _bytewise),
    PrimaryKeyConstraint("token", name="claims_pkey"),
)
"""What workers have leased: rows of `queue` (event and n) in the order in which they are started, under one lease."""

runs = Table(
    "runs",
    metadata,
    Column("event", BigInteger, nullable=False),
    Column("handler", _bytewise, nullable=False),
    Column("cycle", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("is_last", Boolean, nullable=False, server_default=text("true")),
    Column("attempts", Integer, nullable=False),
    Column("started_at", _moment),
    Column("finished_at", _moment, nullable=False),
    Column("result", JSON),
    Column("sealed_result", LargeBinary),
    Column("key_id", Text),
    Column("issue", _bytewise),
    PrimaryKeyConstraint("event", "handler", "cycle", name="runs_pkey"),
    Index("runs_dead", "event", postgresql_where=text("status = 'dead' AND is_last")),
    Index("runs_ignored", "event", postgresql_where=text("status = 'ignored' AND is_last")),
    Index("runs_finished", "finished_at", postgresql_using="brin"),
    Index("runs_issue", "issue", "event", postgresql_where=text("issue IS NOT NULL AND is_last")),
)
"""What became of runs: a row per cycle; without a handler of events that nobody takes, or that can't be read."""

redeliveries = Table(
    "redeliveries",
    metadata,
    Column("event", BigInteger, ForeignKey("hookonce.events.id", ondelete="CASCADE"), primary_key=True),
    Column("count", Integer, nullable=False),
)
"""How often an event came again."""

steps = Table(
    "steps",
    metadata,
    Column("event", BigInteger, ForeignKey("hookonce.events.id", ondelete="CASCADE"), nullable=False),
    Column("handler", _bytewise, nullable=False),
    Column("name", _bytewise, nullable=False),
    Column("state", Text, nullable=False),
    Column("owner", Uuid, nullable=False),
    Column("attempt", Integer, nullable=False, server_default=text("1")),
    Column("is_uncertain", Boolean, nullable=False, server_default=text("false")),
    Column("started_at", _moment, nullable=False, server_default=text("now()")),
    Column("finished_at", _moment),
    Column("note", Text),
    Column("result", LargeBinary),
    Column("key_id", Text),
    PrimaryKeyConstraint("event", "handler", "name", name="steps_pkey"),
    Index("steps_stopped", "event", postgresql_where=text("state = 'failed_final'")),
)

failures = Table(
    "failures",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column(
        "event", BigInteger, ForeignKey("hookonce.events.id", ondelete="CASCADE"), nullable=False, index=True
    ),
    Column("handler", _bytewise, nullable=False),
    Column("cycle", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("failed_at", _moment, nullable=False, server_default=text("now()")),
    Column("started_at", _moment),
    Column("error", Text, nullable=False),
    Column("traceback", LargeBinary),
    Column("key_id", Text),
    Column("issue", _bytewise),
    Column("release", _bytewise),
    Index("failures_issue", "issue", "id", postgresql_where=text("issue IS NOT NULL")),
)

issues = Table(
    "issues",
    metadata,
    Column("id", _bytewise, nullable=False),
    Column("handler", _bytewise, nullable=False),
    Column("title", Text, nullable=False),
    Column("first_seen", _moment, nullable=False, server_default=text("now()")),
    Column("first_release", Text, nullable=False),
    Column("fixed_after", _moment),
    Column("ignored_until", _moment),
    Column("reopened_at", _moment),
    PrimaryKeyConstraint("id", name="issues_pkey"),
)
"""Failures of one handler at one place. `fixed_after`: since when the last release that failed has been there."""

releases = Table(
    "releases",
    metadata,
    Column("name", _bytewise, nullable=False),
    Column("first_seen", _moment, nullable=False, server_default=text("now()")),
    PrimaryKeyConstraint("name", name="releases_pkey"),
)

run_logs = Table(
    "run_logs",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("event", BigInteger, nullable=False, index=True),
    Column("handler", _bytewise, nullable=False),
    Column("cycle", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("received_at", _moment, nullable=False),
    Column("lines", LargeBinary, nullable=False),
    Column("key_id", Text),
    Index("run_logs_received_at", "received_at", postgresql_using="brin"),
)

conflicts = Table(
    "conflicts",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("event", BigInteger, ForeignKey("hookonce.events.id", ondelete="CASCADE"), nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("first_at", _moment, nullable=False, server_default=text("now()")),
    Column("last_at", _moment, nullable=False, server_default=text("now()")),
    Column("deliveries", Integer, nullable=False, server_default=text("1")),
    Column("headers", JSON, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("key_id", Text),
    UniqueConstraint("event", "fingerprint", name="conflicts_event_fingerprint_key"),
)

rejected = Table(
    "rejected",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("rejected_at", _moment, nullable=False),
    Column("source", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("headers", JSON, nullable=False),
    Column("body_prefix", LargeBinary, nullable=False),
    Column("key_id", Text),
)

rejections = Table(
    "rejections",
    metadata,
    Column("source", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    PrimaryKeyConstraint("source", "reason", name="rejections_pkey"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at", _moment, nullable=False, server_default=text("now()")),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", JSON, nullable=False),
)

pauses = Table(
    "pauses",
    metadata,
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("since", _moment, nullable=False, server_default=text("now()")),
    PrimaryKeyConstraint("kind", "name", name="pauses_pkey"),
)

limits = Table(
    "limits",
    metadata,
    Column("handler", _bytewise, nullable=False),
    Column("key", Text, nullable=False),
    Column("head", _moment, nullable=False),
    Column("has_queue", Boolean, nullable=False, server_default=text("false")),
    Column("schedule", Text),
    Column("given_at", _moment),
    PrimaryKeyConstraint("handler", "key", name="limits_pkey"),
)

limit_places = Table(
    "limit_places",
    metadata,
    Column("handler", _bytewise, nullable=False),
    Column("event", BigInteger, nullable=False),
    Column("key", Text, nullable=False),
    Column("token", Uuid, nullable=False),
    PrimaryKeyConstraint("handler", "event", name="limit_places_pkey"),
)

breakers = Table(
    "breakers",
    metadata,
    Column("handler", _bytewise, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("error", Text, nullable=False),
    Column("opened_at", _moment),
    Column("try_at", _moment),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("trying", BigInteger),
    PrimaryKeyConstraint("handler", name="breakers_pkey"),
)

batches = Table(
    "batches",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("handler", _bytewise, nullable=False),
    Column("events", ARRAY(BigInteger), nullable=False),
    Column("error", Text),
    Column("made_at", _moment, nullable=False, server_default=text("now()")),
)

marks = Table(
    "marks",
    metadata,
    Column("event", BigInteger, nullable=False),
    Column("n", SmallInteger, nullable=False),
    Column("token", Uuid, nullable=False),
    PrimaryKeyConstraint("event", "n", "token", name="marks_pkey"),
)
"""Attempts that committed by themselves (`receiver.ledger.runs.marks`); none is seen of one that ends as it should."""

batch_counts = Table(
    "batch_counts",
    metadata,
    Column("handler", _bytewise, nullable=False),
    Column("batches", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("halvings", BigInteger, nullable=False),
    PrimaryKeyConstraint("handler", name="batch_counts_pkey"),
)

handed_secrets = Table(
    "handed_secrets",
    metadata,
    Column("source", _bytewise, nullable=False),
    Column("secret", Text),
    Column("handed_at", _moment, nullable=False, server_default=text("now()")),
    Column("sealed", LargeBinary),
    Column("key_id", Text),
    PrimaryKeyConstraint("source", name="handed_secrets_pkey"),
)

secret_use = Table(
    "secret_use",
    metadata,
    Column("source", Text, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("last_at", _moment, nullable=False),
    PrimaryKeyConstraint("source", "slot", name="secret_use_pkey"),
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("source", _bytewise, nullable=False),
    Column("reason", Text, nullable=False),
    Column("arrived_at", _moment, nullable=False, server_default=text("now()")),
    Column("key_id", Text, nullable=False),
    Column("delivery", LargeBinary, nullable=False),
    Index("quarantine_source", "source", "id"),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("created_at", _moment, nullable=False, server_default=text("now()")),
    Column("expires_at", _moment),
    UniqueConstraint("name", name="api_tokens_name_key"),
    UniqueConstraint("hash", name="api_tokens_hash_key"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("scope", Text, nullable=False),
    Column("key", _bytewise, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("started_at", _moment, nullable=False, server_default=text("now()")),
    Column("status", Integer),
    Column("headers", JSON),
    Column("body", LargeBinary),
    Column("state", Text, nullable=False, server_default=text("'completed'")),
    Column("owner", Uuid),
    Column("attempt", Integer, nullable=False, server_default=text("1")),
    Column("is_uncertain", Boolean, nullable=False, server_default=text("false")),
    Column("lease_until", _moment),
    Column("finished_at", _moment),
    Column("expires_at", _moment, nullable=False, server_default=text("now() + interval '24 hours'")),
    PrimaryKeyConstraint("scope", "key", name="idempotency_pkey"),
    Index("idempotency_expires", "expires_at"),
    Index("idempotency_open", "started_at", postgresql_where=text("state = 'in_progress'")),
)

bulk_replays = Table(
    "bulk_replays",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("who", Text, nullable=False),
    Column("started_at", _moment, nullable=False, server_default=text("now()")),
    Column("ended_at", _moment),
    Column("filter", JSON, nullable=False),
    Column("rate", REAL),
    Column("matched", Integer, nullable=False),
    Column("replayed", Integer, nullable=False, server_default=text("0")),
    Column("left_alone", Integer, nullable=False, server_default=text("0")),
    Column("last_event", BigInteger, nullable=False, server_default=text("0")),
    Column("until_event", BigInteger, nullable=False),
    Column("driver", Text),
    Column("driven_at", _moment, nullable=False, server_default=text("now()")),
    Index("bulk_replays_open", "id", postgresql_where=text("ended_at IS NULL")),
)

bulk_steps = Table(
    "bulk_steps",
    metadata,
    Column("bulk", BigInteger, ForeignKey("hookonce.bulk_replays.id", ondelete="CASCADE"), nullable=False),
    Column("last_event", BigInteger, nullable=False),
    Column("events", ARRAY(BigInteger), nullable=False),
    Column("done", Integer, nullable=False, server_default=text("0")),
    Column("dead", Integer, nullable=False, server_default=text("0")),
    Column("checked_at", _moment, nullable=False, server_default=text("now()")),
    PrimaryKeyConstraint("bulk", "last_event", name="bulk_steps_pkey"),
    Index("bulk_steps_open", "checked_at", postgresql_where=text("events <> '{}'")),
)

activity = Table(
    "activity",
    metadata,
    Column("minutes", SmallInteger, nullable=False),
    Column("at", _moment, nullable=False),
    Column("source", _bytewise, nullable=False),
    Column("what", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    PrimaryKeyConstraint("minutes", "at", "source", "what", name="activity_pkey"),
)

event_counts = Table(
    "event_counts",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("source", _bytewise, nullable=False),
    Column("what", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
)

slice_counts = Table(
    "slice_counts",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("slice", BigInteger, nullable=False),
    Column("source", _bytewise, nullable=False),
    Column("what", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("first_at", _moment),
)
"""Events by slice of ids, source and status, as far as they are not done (`receiver.ledger.stats.event_counts`)."""

alerts = Table(
    "alerts",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("since", _moment, nullable=False, server_default=text("now()")),
    Column("ended_at", _moment),
    Index("alerts_open", "kind", "subject", unique=True, postgresql_where=text("ended_at IS NULL")),
)

watching = Table(
    "watching",
    metadata,
    Column("evaluated_at", _moment, nullable=False),
    Column("since", _moment, nullable=False),
)

handlers = Table(
    "handlers",
    metadata,
    Column("handler", _bytewise, nullable=False),
    Column("place", Text, nullable=False),
    Column("pattern", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("timeout", Interval, nullable=False),
    Column("batch", Integer),
    Column("announced_at", _moment, nullable=False, server_default=text("now()")),
    Column("models", JSON),
    PrimaryKeyConstraint("handler", "place", "pattern", name="handlers_pkey"),
)

handler_attempts = Table(
    "handler_attempts",
    metadata,
    Column("handler", _bytewise, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("announced_at", _moment, nullable=False, server_default=text("now()")),
    PrimaryKeyConstraint("handler", "attempts", name="handler_attempts_pkey"),
)

worker_slots = Table(
    "worker_slots",
    metadata,
    Column("worker", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("busy", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("attempts", JSON, nullable=False),
    Column("seen_at", _moment, nullable=False, server_default=text("now()")),
    PrimaryKeyConstraint("worker", name="worker_slots_pkey"),
)

ledger = Table(
    "ledger",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column(
        "window_key",
        LargeBinary,
        nullable=False,
        server_default=text(
            "decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')"
        ),
    ),
)
"""One row: which ledger this is, and the key of its marks in the dedup window."""
