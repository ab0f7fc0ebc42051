"""Sign-in links that were used, and sessions that were ended."""

import psycopg

# The ids of links that were used, and of sessions that were ended, are kept where keys of requests are, for as
# long: a day, and so longer than any link or session is good for.
_USE_LINK = """
INSERT INTO hookonce.idempotency (scope, key, fingerprint, status) VALUES ('sign-in link', %s, '', 200)
ON CONFLICT DO NOTHING RETURNING key
"""


_END_SESSION = """
INSERT INTO hookonce.idempotency (scope, key, fingerprint, status) VALUES ('session', %s, '', 200)
  ON CONFLICT DO NOTHING
"""


_HAS_ENDED = "SELECT FROM hookonce.idempotency WHERE scope = 'session' AND key = %s"


def use_link(connection: psycopg.Connection, link: str) -> bool:
    """Take a one-time sign-in link; False if somebody did before."""
    return connection.execute(_USE_LINK, [link]).fetchone() is not None


def end_session(connection: psycopg.Connection, session: str) -> None:
    """End a session of the dashboard, whoever holds a copy of its cookie."""
    connection.execute(_END_SESSION, [session])


def has_ended(connection: psycopg.Connection, session: str) -> bool:
    """Return whether somebody has signed out of a session."""
    return connection.execute(_HAS_ENDED, [session]).fetchone() is not None
