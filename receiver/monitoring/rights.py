"""The rights of the role in DATABASE_URL, and where its search path leads: said before it does harm."""

import psycopg

from hookonce.receiver.ledger.database import roles, schema
from hookonce.receiver.ledger.database.roles import Task

_OWNS_BODIES = """
SELECT pg_has_role(current_user, c.relowner, 'USAGE') AND has_schema_privilege(c.relnamespace, 'CREATE')
           OR coalesce(has_function_privilege(to_regprocedure('hookonce.make_partition(date)'), 'EXECUTE'), false),
       pg_get_userbyid(c.relowner), current_user
FROM pg_catalog.pg_class AS c WHERE c.oid = 'hookonce.bodies'::regclass
"""


def search_path(connection: psycopg.Connection, place: str) -> str | None:
    """Return a warning if a handler that says `events` would reach the ledger's own table; None if not."""
    role = schema.on_the_path_of(connection, place)
    if role is None:
        return None
    return (
        f"the search path of role {role} leads into the ledger's schema {place}, so that a handler's own `events` or "
        f"`runs` would be the ledger's; ALTER ROLE {role} SET search_path = public, or name the role otherwise"
    )


def partitions(connection: psycopg.Connection) -> str | None:
    """Return a warning if this role can make no partitions for the coming days; None if it can.

    Only who owns a partitioned table may add to it, and a function of the owner's (`receiver.ledger.database.roles`).
    """
    row = connection.execute(_OWNS_BODIES).fetchone()
    if row is None or row[0]:
        return None
    return (
        f"role {row[2]} can't make those of the coming days, since bodies belongs to {row[1]}; GRANT {row[1]} TO "
        f"{row[2]}, or let `hookonce db roles` give it what its work needs"
    )


def works(connection: psycopg.Connection) -> tuple[str, bool]:
    """Return what a role can do of what processes do, in words, and whether that is anything."""
    lacks = {task: roles.lacking(connection, task) for task in (Task.DESK, Task.RECEIVER, Task.WORKER)}
    done = [str(task) for task, rights in lacks.items() if not rights]
    if done:
        return f"enough for: {', '.join(done)}", True
    task, rights = min(lacks.items(), key=lambda each: len(each[1]))
    table, right = rights[0]
    role = connection.info.user
    return (
        f"not enough for any process: as {task} it lacks {right} on {table}; have `hookonce db roles --{task} {role}` "
        "give what is needed"
    ), False
