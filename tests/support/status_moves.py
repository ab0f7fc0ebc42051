"""Which moves of statuses a ledger makes: every row that is made or changed, as the database saw it."""

from hookonce.receiver.ledger import states

RECORD = """
CREATE TABLE moves (kind text NOT NULL, before text, after text NOT NULL);
CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO moves VALUES (TG_TABLE_NAME, CASE TG_OP WHEN 'UPDATE' THEN OLD.status END, NEW.status);
    RETURN NULL;
END $$;
CREATE TRIGGER note_move AFTER INSERT OR UPDATE ON hookonce.events FOR EACH ROW EXECUTE FUNCTION note_move();
CREATE TRIGGER note_move AFTER INSERT OR UPDATE ON hookonce.runs FOR EACH ROW EXECUTE FUNCTION note_move();
"""
MADE = "SELECT DISTINCT kind, before, after FROM moves WHERE before IS DISTINCT FROM after"


def record(connection):
    """Note the moves from now on."""
    connection.execute(RECORD)


def made(connection):
    """Return the moves made so far, as (table, status before or None, status after)."""
    return set(connection.execute(MADE).fetchall())


def declared():
    """Return the moves that the state machine has, in the same form."""
    return {
        *(("events", None, after) for after in states.NEW_EVENT),
        *(("events", before, after) for before, later in states.EVENT_MOVES.items() for after in later),
        *(("runs", None, after) for after in states.NEW_RUN),
        *(("runs", before, after) for before, later in states.RUN_MOVES.items() for after in later),
    }
