"""The table of the FastAPI receiver, apart from it: who makes the table has no FastAPI."""

TABLE = """
CREATE TABLE IF NOT EXISTS received (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, source text NOT NULL, event_id text NOT NULL,
    type text NOT NULL, account text, fingerprint bytea NOT NULL, headers json NOT NULL, body bytea NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(), UNIQUE (source, event_id)
)
"""
