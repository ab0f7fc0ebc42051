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


_HAS_ENDED = """
SELECT EXISTS (SELECT FROM hookonce.idempotency WHERE scope = 'session' AND key = %(session)s)
       OR (%(token)s::bigint IS NOT NULL AND NOT EXISTS (
           SELECT FROM hookonce.api_tokens WHERE id = %(token)s AND (expires_at IS NULL OR expires_at > now())))
"""


def use_link(connection: psycopg.Connection, link: str) -> bool:
    """Take a one-time sign-in link; False if somebody did before."""
    return connection.execute(_USE_LINK, [link]).fetchone() is not None


def end_session(connection: psycopg.Connection, session: str) -> None:
    """End a session of the dashboard, whoever holds a copy of its cookie."""
    connection.execute(_END_SESSION, [session])


def has_ended(connection: psycopg.Connection, session: str, token: int | None) -> bool:
    """Return whether somebody has signed out of a session, or the API token that it was begun with is gone."""
    row = connection.execute(_HAS_ENDED, {"session": session, "token": token}).fetchone()
    return row is None or bool(row[0])
