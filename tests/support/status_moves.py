"""Which moves of states a ledger makes: whatever a transaction has changed when it is committed."""

from hookonce.receiver.ledger import states

RECORD = """
CREATE TABLE moves (kind text NOT NULL, before text, after text NOT NULL);
CREATE TABLE noted (kind text, event bigint, handler text, status text NOT NULL, PRIMARY KEY (kind, event, handler));
CREATE FUNCTION note_moves() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    number bigint := to_jsonb(coalesce(NEW, OLD)) ->> TG_ARGV[0];
BEGIN
    WITH now AS (
        SELECT 'events' AS kind, id AS event, '' AS handler, status FROM hookonce.event_states WHERE id = number
        UNION ALL SELECT 'runs', event, handler, status FROM hookonce.run_states WHERE event = number
    ), moved AS (
        INSERT INTO moves SELECT kind, noted.status, now.status FROM now LEFT JOIN noted USING (kind, event, handler)
        WHERE noted.status IS DISTINCT FROM now.status
    )
    INSERT INTO noted SELECT * FROM now ON CONFLICT (kind, event, handler) DO UPDATE SET status = excluded.status;
    RETURN NULL;
END $$;
"""
WATCH = """
CREATE CONSTRAINT TRIGGER note_moves AFTER INSERT OR UPDATE OR DELETE ON hookonce.{} DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION note_moves({});
"""
WATCHED = {"events": "id", "queue": "event", "runs": "event"}
MADE = "SELECT DISTINCT kind, before, after FROM moves"


def record(connection):
    """Note the moves from now on."""
    connection.execute(RECORD)
    for table, column in WATCHED.items():
        connection.execute(WATCH.format(table, column))


def made(connection):
    """Return the moves made so far, as (table, status before or None, status after)."""
    return set(connection.execute(MADE).fetchall())


def declared():
    """Return the moves that the state machine has, in the same form; none from a status that none leads to."""
    return {
        *(("events", None, after) for after in states.NEW_EVENT),
        *(("events", before, after) for before, later in states.EVENT_MOVES.items() for after in later),
        *(("runs", None, after) for after in states.NEW_RUN),
        *(("runs", before, after) for before, later in states.RUN_MOVES.items() for after in later),
    }
