"""The tables of `hookonce.ledger` and the section "Ask by SQL" of docs/reference/tables.md, on real ledgers."""

import ast
import os
import re
import subprocess
import sys
import uuid
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import create_engine, select
from sqlalchemy.dialects import postgresql

from hookonce.ledger import event_states, events, failures, queue, run_states, runs
from hookonce.receiver.config.server_urls import with_schema
from hookonce.receiver.ledger.database import connections, migrate
from hookonce.receiver.ledger.store import store
from tests.support.for_each import for_each
from tests.support.new_event import new_event
from tests.support.outcomes import end_events, put_into_state
from tests.support.type_checker import mypy

PAGE = (Path(__file__).parents[2] / "docs/reference/tables.md").read_text().partition("## Ask by SQL")[2]
QUERIES = re.findall(r"^```sql\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PYTHON, INCLUDE_NAME = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
TABLES = {each.name: each for each in (events, event_states, queue, runs, run_states, failures)}
RUN_STATES = ("waiting", "running", "done", "dead")
STATES = ("received", "held", "ignored", *RUN_STATES)
COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, c.relkind
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.oid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
"""
ORDERS = """
CREATE TABLE public.orders (id serial PRIMARY KEY, total int NOT NULL, stripe_event varchar NOT NULL);
INSERT INTO public.orders VALUES (7, 4900, 'evt_done'), (8, 100, 'evt_dead'), (9, 5, 'evt_of_nobody')
"""
TYPED = """
from datetime import datetime
from typing import assert_type

from sqlalchemy import Column, Connection, Table, select

from hookonce.ledger import events, failures, queue, runs

for table in (events, queue, runs, failures):
    named: Table = table
assert_type(events.c.id, Column[int])
assert_type(events.c.account, Column[str | None])
assert_type(queue.c.due_at, Column[datetime])
assert_type(runs.columns.is_last, Column[bool])


def oldest(connection: Connection) -> datetime | None:
    return connection.execute(select(events.c.occurred_at, events.c.id).order_by(events.c.id)).one()[0]
"""
USES = """
import os

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

with create_engine(os.environ["DATABASE_URL"].replace("sql:", "sql+psycopg:", 1)).connect() as connection:
    print([(order.id, status) for order, status in Session(connection).execute(orders)])
    for options in ({}, {"include_schemas": True, "include_name": include_name}, {"include_schemas": True}):
        context = MigrationContext.configure(connection, opts=options)
        print({change[0] for change in compare_metadata(context, Base.metadata) if isinstance(change, tuple)})
"""


@pytest.fixture
def ledger(database_url):
    """A ledger with an event in each state, and one that was done yesterday."""
    with connections.connect(database_url) as connection:
        fill(connection)
        connection.execute(ORDERS)
        yield connection


def fill(connection):
    for state in STATES:
        [answer] = store(connection, [new_event(f"evt_{state}")]).values()
        put_into_state(connection, answer.id, state, [("bill", state, 3)] if state in RUN_STATES else ())
    [answer] = store(connection, [new_event("evt_of_yesterday")]).values()
    end_events(connection, "done", [answer.id], ago=timedelta(days=1))


@pytest.fixture
def reader(ledger, administer, database_url):
    """A connection of a role whose rights are those that `hookonce db roles --reader` prints."""
    name = f"reader_{uuid.uuid4().hex[:12]}"
    administer(("CREATE ROLE {}", name))
    ledger.execute(hookonce("db", "roles", "--reader", name, DATABASE_URL=database_url))
    ledger.execute(sql.SQL("GRANT SELECT ON public.orders TO {}").format(sql.Identifier(name)))
    with psycopg.connect(database_url, options=f"-c role={name}") as connection:
        yield connection
    ledger.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
    administer(("DROP ROLE {}", name))


def hookonce(*arguments, **environ):
    return python("-m", "hookonce.receiver.cli", *arguments, **environ)


def python(*arguments, **environ):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOOKONCE_")}
    done = subprocess.run(
        [sys.executable, *arguments], env=kept | environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@for_each(TABLES)
def test_promised_column_is_the_ledgers_by_name_type_and_nullability(name, ledger):
    found = {row[0]: row[1:] for row in ledger.execute(COLUMNS, [f"hookonce.{name}"])}

    for column in TABLES[name].c:
        kind, is_nullable, relation = found[column.name]
        assert column.type.compile(postgresql.dialect()).lower() == kind, column
        assert relation == "v" or column.nullable == is_nullable, column


@for_each(["event_states", "run_states"])
def test_view_has_no_null_where_its_column_excludes_one(name, ledger):
    view = TABLES[name]
    rows = ledger.execute(str(select(view))).fetchall()

    nulls = {column.name for row in rows for column, value in zip(view.c, row, strict=True) if value is None}
    assert len(rows) >= len(RUN_STATES)
    assert nulls <= {column.name for column in view.c if column.nullable}


def test_page_lists_every_promised_column():
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*`) \|$", PAGE, re.MULTILINE))
    columns = {
        name: re.findall(r"`(\w+)`", text.replace("the columns of ", "")) for name, text in listed.items()
    }
    columns["event_states"][:1] = columns["events"]

    assert columns == {name: table.c.keys() for name, table in TABLES.items()}


def test_queries_of_the_page_answer_a_reader(reader):
    today, order, dead = (reader.execute(query).fetchall() for query in QUERIES)

    assert today == [("stripe", "invoice.paid", 1)]
    assert [row[:4] for row in order] == [(7, 4900, "invoice.paid", "done")]
    assert [row[:5] for row in dead] == [("stripe", "evt_dead", "invoice.paid", "bill", 3)]


def test_reader_selects_every_promised_table_whole(reader):
    for table in TABLES.values():
        assert reader.execute(str(select(table))).description


@pytest.mark.parametrize("place", ["hookonce", "inbox"])
def test_code_of_the_page_joins_and_is_left_alone_by_autogenerate(empty_database, place):
    url = with_schema(empty_database, place)
    migrate.upgrade(url)
    with connections.connect(url) as connection:
        fill(connection)
        connection.execute(ORDERS)

    said = python("-c", PYTHON + INCLUDE_NAME + USES, DATABASE_URL=empty_database, HOOKONCE_SCHEMA=place)

    joined, *changes = map(ast.literal_eval, said.replace("set()", "{}").splitlines())
    assert joined == [(7, "done"), (8, "dead")]
    assert [*map(len, changes[:2])] == [0, 0]
    assert "remove_table" in changes[2]


def test_statement_of_the_usual_schema_is_led_to_another(empty_database):
    url = with_schema(empty_database, "inbox")
    migrate.upgrade(url)
    with connections.connect(url) as connection:
        fill(connection)
    engine = create_engine(empty_database.replace("postgresql:", "postgresql+psycopg:", 1))

    with engine.connect().execution_options(schema_translate_map={"hookonce": "inbox"}) as connection:
        found = connection.scalars(select(event_states.c.status).order_by(event_states.c.id)).all()
    engine.dispose()

    assert found == [*STATES, "done"]


def test_columns_have_the_types_that_a_strict_checker_reports(tmp_path):
    (tmp_path / "page.py").write_text(PYTHON + INCLUDE_NAME)
    (tmp_path / "typed.py").write_text(TYPED)

    code, said = mypy(tmp_path, "page.py", "typed.py")

    assert (code, said) == (0, [])
