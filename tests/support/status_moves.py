"""Which moves of states a ledger makes: whatever a transaction has changed when it is committed."""

from hookonce.receiver.ledger.states import EventStatus, RunStatus

NEW = {"events": ("received", "held", "dead", "ignored"), "runs": ("waiting", "running")}
"""An event is stored held if its source holds repeats and it is one, or if it was imported without `--run`; dead if it
can't be read; ignored if its source does not accept it. The first claim of an event makes its runs, leased or not."""
MOVES = {
    "events": {
        # Claimed: a handler runs; none may run yet; or none takes it. Or discarded before that.
        EventStatus.RECEIVED: ("running", "waiting", "ignored", "discarded"),
        # The last run ended well; one is to be tried again, was released or lost; or one gave up.
        EventStatus.RUNNING: ("done", "waiting", "dead"),
        # A run is claimed again; or what waits is discarded, beside others that are done or not.
        EventStatus.WAITING: ("running", "discarded", "done"),
        # Replayed, or discarded; an event without runs, being unreadable, stays dead.
        EventStatus.DONE: ("waiting",),
        EventStatus.DEAD: ("waiting", "discarded", "done"),
        EventStatus.DISCARDED: ("waiting", "received"),
        # Replayed, or a worker started whose handlers take it.
        EventStatus.IGNORED: ("received",),
        EventStatus.HELD: ("received", "discarded"),
        EventStatus.LOST: ("received",),
    },
    "runs": {
        RunStatus.WAITING: ("running", "discarded"),
        # The handler returned; it failed, asked for more time, was released or lost; or no attempt is left.
        RunStatus.RUNNING: ("done", "waiting", "dead"),
        RunStatus.DONE: ("waiting",),
        RunStatus.DEAD: ("waiting", "discarded"),
        RunStatus.DISCARDED: ("waiting",),
    },
}
"""From each status to those that may follow it; that it stays as it is may always be. Nothing leads to `lost`."""
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
    """Return the moves that the state machine has, in the same form."""
    born = {(kind, None, after) for kind, statuses in NEW.items() for after in statuses}
    moved = {
        (kind, before, after) for kind, rows in MOVES.items() for before in rows for after in rows[before]
    }
    return born | moved
