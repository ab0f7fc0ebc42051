r"""Which role of PostgreSQL needs which rights on the ledger, where it is not one role that does everything.

Rights are written with the letters that psql's `\dp` shows: `r` SELECT, `a` INSERT, `w` UPDATE, `d` DELETE. `l` is the
right to lock rows, which PostgreSQL gives with UPDATE of any column: here of one by which nothing is decided, or of
those that may be changed. `e` is the right to erase: UPDATE of what an erasure takes from an event. Views
read with the rights of their owner, who ran `hookonce db upgrade`; numbers of identity columns need no right.

Only the owner of `bodies` may add a day to it or drop one, and Django's role has no right on any table: they do by
functions what they need (`receiver.ledger.database.functions`).
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from hookonce.receiver.ledger.database import functions, schema
from hookonce.receiver.ledger.database.functions import Function


class Task(StrEnum):
    """A task of a process with the ledger; a role may do several."""

    RECEIVER = "receiver"
    """`hookonce serve`: takes deliveries and commands in."""
    WORKER = "worker"
    """`hookonce worker` and `hookonce sweep`: claim, run and end, and look after the ledger."""
    DESK = "desk"
    """The command line, and `serve` with its API and its dashboard. They take events in besides: what was rejected."""
    DJANGO = "django"
    """Django's own connection, on which its handlers write and runs are ended, by functions alone."""
    READER = "reader"
    """A role that selects by SQL: the columns of `receiver.ledger.database.public_tables`, and no others."""


class Rights(NamedTuple):
    """Rights on one table, by task; `django` has none, and `reader` has its columns."""

    receiver: str = ""
    worker: str = ""
    desk: str = ""


RIGHTS: Mapping[str, Rights] = {
    # What came
    "events": Rights("ral", "radl", "radle"),
    "bodies": Rights("a", "rad", "rawd"),
    "repeat_marks": Rights("ra", "ra", "ra"),
    "redeliveries": Rights("raw", "raw", "raw"),
    "conflicts": Rights("raw", "raw", "rawd"),
    "rejected": Rights("rad", "rd", "rawd"),
    "rejections": Rights("raw", "r", "raw"),
    "quarantine": Rights("rad", "rd", "rawd"),
    "handed_secrets": Rights("rawd", "r", "rawd"),
    "secret_use": Rights("raw", "r", "raw"),
    "listings": Rights("r", "raw", "raw"),
    "listed_days": Rights("r", "rawd", "raw"),
    "missing_events": Rights("r", "rawd", "rawd"),
    "subscriptions": Rights("r", "rawd", "raw"),
    "api_calls": Rights("", "raw", "raw"),
    # What is to be done
    "queue": Rights("ra", "rawd", "radl"),
    "claims": Rights("r", "rawd", "r"),
    "guards": Rights("", "rad"),
    "limits": Rights("r", "rawd", "r"),
    "limit_places": Rights("r", "rawd", "r"),
    "breakers": Rights("r", "rawd", "rd"),
    "pauses": Rights("r", "radl", "radl"),
    # What became of it
    "runs": Rights("ra", "rawd", "rawd"),
    "failures": Rights("ra", "raw", "rawd"),
    "issues": Rights("r", "rawd", "rw"),
    "releases": Rights("r", "ra", "r"),
    "run_logs": Rights("r", "rawd", "rawd"),
    "steps": Rights("r", "rawd", "rwd"),
    "entities": Rights("", "rawd", "rdl"),
    "waits": Rights("", "rawd", "rwd"),
    "arrivals": Rights("", "rawd", "rd"),
    "awaited": Rights("", "rawd", "r"),
    "event_states": Rights("r", "r", "r"),
    "run_states": Rights("r", "r", "r"),
    # What people do
    "audit": Rights("", "rad", "rad"),
    "api_tokens": Rights("", "", "rad"),
    "idempotency": Rights("rawd", "rawd", "rawd"),
    "bulk_replays": Rights("r", "raw", "raw"),
    "bulk_steps": Rights("r", "rawd", "raw"),
    # Sums and watches
    "activity": Rights("raw", "rawd", "raw"),
    "event_counts": Rights("r", "rad", "rad"),
    "lost_slices": Rights("r", "rawd", "r"),
    "batch_counts": Rights("r", "raw", "r"),
    "alerts": Rights("r", "rawd", "raw"),
    "watching": Rights("r", "raw", "r"),
    "clock": Rights("raw", "raw", "raw"),
    "handlers": Rights("r", "rawd", "r"),
    "handler_attempts": Rights("r", "rawd", "r"),
    "worker_slots": Rights("r", "rawd", "r"),
    "ledger": Rights("r", "r", "rw"),
    "hookonce_version": Rights("r", "r", "r"),
}
"""What each task needs, table by table; `tests/ledger/test_roles.py` shows that it is enough, and what it is not."""

LOCKED_BY: Mapping[str, Sequence[str]] = {
    "entities": ["raised_at"],
    "events": ["occurred_at"],
    "pauses": ["since"],
    "queue": ["cycle", "attempts", "due_at", "waits", "slot_at", "schedule"],  # whose a run is stays as it is
}
"""The columns whose UPDATE stands for the right to lock rows."""

_WORDS = {"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"}

FUNCTIONS: Mapping[Function, frozenset[Task]] = {
    functions.MAKE_PARTITION: frozenset({Task.RECEIVER, Task.WORKER, Task.DESK}),
    functions.DROP_PARTITION: frozenset({Task.WORKER, Task.DESK}),
    functions.GUARD_TRANSACTION: frozenset({Task.DJANGO}),
    functions.END_RUNS: frozenset({Task.DJANGO}),
    functions.RAISE_ENTITY: frozenset({Task.DJANGO}),
}
"""Who needs which function."""

# Made by who gives the rights, a superuser maybe, they are to have no more than the ledger's owner has.
_OWN_FUNCTION = """
DO $body$ BEGIN
    EXECUTE format('ALTER FUNCTION %s OWNER TO %s', '{function}',
                   (SELECT relowner::regrole FROM pg_class WHERE oid = 'hookonce.bodies'::regclass));
END $body$"""

# Sequences of identity columns and indexes go with their tables.
_GIVE_AWAY = """
DO $body$ DECLARE place oid := (SELECT relnamespace FROM pg_class WHERE oid = 'hookonce.bodies'::regclass);
                  name text; kind text; BEGIN
    EXECUTE format('ALTER SCHEMA %s OWNER TO {upgrade}', place::regnamespace);
    FOR name, kind IN
        SELECT oid::regclass, CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END FROM pg_class
        WHERE relnamespace = place AND relkind IN ('r', 'p', 'v')
    LOOP EXECUTE format('ALTER %s %s OWNER TO {upgrade}', kind, name); END LOOP;
    FOR name IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = place
    LOOP EXECUTE format('ALTER ROUTINE %s OWNER TO {upgrade}', name); END LOOP;
END $body$"""


def statements(roles: Mapping[Task, str], place: str, upgrade: str | None = None) -> Sequence[str]:
    """Return what gives each role the rights of its tasks, and takes away what it had besides; for one transaction.

    They can be run again. `place` is the ledger's schema. `upgrade` is the role that is to own the ledger; None leaves
    it with who made it. An owner is given nothing, and loses nothing.
    """
    return [
        schema.named(each, place) for each in _statements(roles, sql.Identifier(place).as_string(), upgrade)
    ]


def _statements(roles: Mapping[Task, str], place: str, upgrade: str | None) -> Iterator[str]:
    if upgrade is not None:
        yield _GIVE_AWAY.replace("{upgrade}", _quoted(upgrade).replace("'", "''")).strip()
    for function in FUNCTIONS:
        yield function.definition
        yield f"REVOKE ALL ON FUNCTION {function.signature} FROM PUBLIC"
        yield _OWN_FUNCTION.replace("{function}", function.signature).strip()
    for role in sorted({*roles.values()} - {upgrade}):
        tasks = [task for task in Task if roles.get(task) == role]
        yield f"GRANT USAGE ON SCHEMA {place} TO {_quoted(role)}"
        yield from _grants(_quoted(role), tasks)


def _grants(role: str, tasks: Sequence[Task]) -> Iterator[str]:
    for table in RIGHTS:
        yield f"REVOKE ALL ON hookonce.{table} FROM {role}"
        if needed := _needed(table, tasks):
            yield f"GRANT {', '.join(needed)} ON hookonce.{table} TO {role}"
    for function, needed_by in FUNCTIONS.items():
        yield f"REVOKE ALL ON FUNCTION {function.signature} FROM {role}"
        if needed_by.intersection(tasks):
            yield f"GRANT EXECUTE ON FUNCTION {function.signature} TO {role}"


def _needed(table: str, tasks: Sequence[Task]) -> Sequence[str]:
    """Return the rights on a table that tasks need, in SQL."""
    letters = {letter for task in tasks for letter in getattr(RIGHTS[table], task, "")}
    found = [word for letter, word in _WORDS.items() if letter in letters]
    if "l" in letters and "w" not in letters:
        found += [f"UPDATE ({column})" for column in LOCKED_BY[table]]
    if "e" in letters:
        found += [f"UPDATE ({column})" for column in ("account", "erased_at")]
    if Task.READER in tasks and "r" not in letters:
        found += [f"SELECT ({column})" for column in _promised().get(table, ())]
    return found


def _promised() -> Mapping[str, Sequence[str]]:
    from hookonce.receiver.ledger.database import public_tables  # noqa: PLC0415  SQLAlchemy, for readers alone

    return public_tables.COLUMNS


def _quoted(role: str) -> str:
    return sql.Identifier(role).as_string()


def apply(connection: psycopg.Connection, roles: Mapping[Task, str], upgrade: str | None = None) -> None:
    """Give roles the rights of their tasks, in one transaction. Needs the rights of who owns the ledger."""
    with connection.transaction():
        for statement in statements(roles, schema.of(connection), upgrade):
            connection.execute(statement.encode())


# A cursor puts the schema into statements, not into values.
_TABLE = "to_regclass(format('%%I.%%I', %(place)s::text, t.name))"

_LACKS = f"""
SELECT format('%%I.%%I', %(place)s::text, t.name), t.right
FROM unnest(%(tables)s::text[], %(rights)s::text[], %(columns)s::text[]) AS t (name, "right", "column")
WHERE NOT CASE WHEN t.column <> '' THEN has_column_privilege({_TABLE}, t.column, t.right)
               ELSE has_table_privilege({_TABLE}, t.right) END
"""  # noqa: S608  constants


def lacking(connection: psycopg.Connection, task: Task) -> Sequence[tuple[str, str]]:
    """Return the rights that the role of a connection lacks for a task: the table's name, and the right."""
    values: dict[str, Any] = {"place": schema.of(connection), "tables": [], "rights": [], "columns": []}
    for table in RIGHTS:
        for right in _needed(table, [task]):
            word, _, column = right.partition(" ")
            values["tables"].append(table)
            values["rights"].append(word)
            values["columns"].append(column.strip("()"))
    return connection.execute(_LACKS, values).fetchall()


_ARE_BEHIND = f"""
WITH ours AS (SELECT c.* FROM unnest(%(tables)s::text[]) AS t (name) JOIN pg_class c ON c.oid = {_TABLE})
SELECT DISTINCT pg_get_userbyid(granted.grantee)
FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid, aclexplode(ours.relacl || a.attacl) AS granted
WHERE granted.grantee NOT IN (0, ours.relowner) AND EXISTS (SELECT FROM ours WHERE relacl IS NULL)
ORDER BY 1
"""  # noqa: S608  constants


def behind(connection: psycopg.Connection) -> Sequence[str]:
    """Return the roles that were given rights on the ledger, if it has tables since on which none were given."""
    values = {"place": schema.of(connection), "tables": list(RIGHTS)}
    return [role for (role,) in connection.execute(_ARE_BEHIND, values)]
