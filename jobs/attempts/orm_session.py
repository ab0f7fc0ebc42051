"""ORM sessions joined to a run's transaction by a savepoint: they commit and roll back as sessions do.

Imported only for a handler that asks for one: the ORM costs every process memory and time.

A commit releases the savepoint, so it keeps what was written for the run's end; a rollback goes back to it and takes
nothing else along. What a handler that returns has left in its session, unflushed or uncommitted, is committed with
the rest: its run is done, so its work counts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from hookonce.jobs.attempts.time_limit import TimeUp

AT_THE_END = (
    "(when what the handler had left in its session was written, after it returned; flush() shows which line)"
)


def call(
    function: Callable[..., object], session_class: type | None, event: object, connection: Connection
) -> object:
    """Call a handler with a session in the transaction of the connection."""
    with _session_in(connection, session_class) as session:
        return function(event, session)


@contextmanager
def _session_in(connection: Connection, session_class: type | None) -> Iterator[Session]:
    """Give a session that is committed at the end of the block, or closed where that is left by an error."""
    session: Session = (session_class or Session)(bind=connection, join_transaction_mode="create_savepoint")
    try:
        yield session
        with told_of_the_end():
            session.commit()
    except TimeUp:  # the connection may be in the midst of a statement, and is thrown away
        raise
    except BaseException:
        with suppress(SQLAlchemyError):  # what the handler raised says more
            session.close()
        raise
    session.close()


@contextmanager
def told_of_the_end() -> Iterator[None]:
    """Say of an error that it came when the handler had returned: no frame of its own is in the traceback."""
    try:
        yield
    except SQLAlchemyError as error:
        error.add_note(AT_THE_END)
        raise
