"""A table of texts, and what PostgreSQL makes of each inside a transaction: whatever ends that is read as an end."""

import itertools
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from hookonce.jobs.attempts.driver_cursors import Effect, effect_of, given
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.dev.embedded import Postgres
from tests.jobs.attempts.test_left_in_sessions import needs_a_pooler
from tests.support.pooler import pooling

DEBIAN = Path("/usr/lib/postgresql/15/bin")
ENDS = [
    *(
        "COMMIT",
        "end",
        "ABORT",
        "Rollback",
        "COMMIT WORK",
        "END TRANSACTION",
        "COMMIT AND CHAIN",
        "ROLLBACK AND CHAIN",
    ),
    *(
        "COMMIT/**/AND NO CHAIN",
        "ROLLBACK WORK",
        "ROLLBACK--\r\nTRANSACTION -- to s",
        "COMMIT;",
        "END/* ; */;",
    ),
    *("ROLLBACK/* to */", "ABORT WORK AND CHAIN", "commit -- to s"),
]
BEFORE = [
    *(
        "",
        " ",
        "\n\t\r\f ",
        ";",
        " ; ;",
        "/* x */",
        "/* /* ' */ \" */",
        "/*/*/**/*/*/",
        "/*/ */",
        "/***/",
        "-- x\n",
    ),
    *("--\r", "--/*\n", "/*\n--*/", "--\n/**/;--\r;"),
]
PREPARES = ["PREPARE TRANSACTION 'x'", ";/**/prepare--\rtransaction 'x'"]
FROM_16_ON = ["\vCOMMIT", " \v;\vCOMMIT", "/**/\vROLLBACK"]
HARMLESS = [
    *(
        "SELECT 1",
        "(SELECT 1)",
        " ;;SELECT 1 ; ",
        "VALUES (1)",
        "TABLE noted",
        "WITH x AS (SELECT 1) TABLE x",
        "",
        ";",
    ),
    *("ROLLBACK TO s", "rollback to savepoint s", "ROLLBACK WORK TO s", "ROLLBACK/**/TRANSACTION--\rTO s"),
    *(
        "SAVEPOINT commit",
        "RELEASE s",
        "-- COMMIT\rSELECT 1",
        "/* COMMIT */ SELECT 1",
        "/* /* */ COMMIT */ SELECT 1",
    ),
    *(
        "SELECT 1 AS commit",
        "SELECT 'COMMIT'",
        "SELECT $$;COMMIT$$",
        "DO $$ BEGIN NULL; END $$",
        "LISTEN x",
        "BEGIN",
    ),
    *("START TRANSACTION", "SET LOCAL application_name = 'x'", "LOCK TABLE noted", "EXPLAIN SELECT 1"),
    *("PREPARE ending AS SELECT 1", "PREPARE transactions AS SELECT 1", "DECLARE c CURSOR FOR SELECT 1"),
    *("SET CONSTRAINTS ALL IMMEDIATE", "CREATE TEMP TABLE commit (x int)", "INSERT INTO noted VALUES (1)"),
]
REFUSED_BY_THE_SERVER = [
    *(
        "SELECT 1; COMMIT",
        "SELECT 1;END",
        "BEGIN; COMMIT",
        "/**/SELECT 1;/**/ROLLBACK",
        "SAVEPOINT x; COMMIT; BEGIN",
    ),
    *("DO $$ BEGIN COMMIT; END $$", "DO $$ BEGIN ROLLBACK; END $$", "DO $$ BEGIN EXECUTE 'COMMIT'; END $$"),
    *(
        "CALL commits()",
        "SELECT commits_too()",
        "INSERT INTO watched VALUES (1)",
        "commit$x",
        "commits",
        '"commit"',
    ),
    *("PREPARE x AS COMMIT", "VACUUM noted", "DO $$ BEGIN CALL commits(); END $$", "EXPLAIN ANALYZE COMMIT"),
    *("SELECT 1 \v;COMMIT", "SELECT '\\'; COMMIT; --'", "E'x'; COMMIT", "U&'x'; COMMIT"),
]
TABLES = """
CREATE TABLE noted (x int); CREATE TABLE watched (x int);
CREATE PROCEDURE commits() LANGUAGE plpgsql AS $f$ BEGIN COMMIT; END $f$;
CREATE FUNCTION commits_too() RETURNS int LANGUAGE plpgsql AS $f$ BEGIN COMMIT; RETURN 1; END $f$;
CREATE FUNCTION commits_now() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN COMMIT; RETURN NEW; END $f$;
CREATE TRIGGER commits BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION commits_now()
"""


class Lenient:
    """A guard that lets everything through: PostgreSQL is asked."""

    has_ended = False

    def require_given(self):
        """Let the cursor go on."""

    def look_at(self, statement):
        """Let the statement go out."""


@pytest.fixture(scope="module", params=["of the run", "Debian's"])
def url(request, servers, disk):
    """The URL of a database of the test's own, on each PostgreSQL that is here."""
    if request.param == "Debian's" and not DEBIAN.exists():
        pytest.skip("PostgreSQL 15 of Debian is not installed")
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        home = servers.database_url
        if request.param == "Debian's":
            server = Postgres.start(directory, durable=False, programs=DEBIAN)
            stack.callback(server.stop)
            home = server.url
        administrator = stack.enter_context(psycopg.connect(home, autocommit=True))
        administrator.execute("CREATE DATABASE texts")
        stack.callback(administrator.execute, "DROP DATABASE texts WITH (FORCE)")
        found = psycopg.conninfo.make_conninfo(home, dbname="texts")
        with psycopg.connect(found, autocommit=True) as connection:
            connection.execute(TABLES)
        yield psycopg.conninfo.conninfo_to_dict(found)


@pytest.fixture(params=["direct", pytest.param("pooled", marks=needs_a_pooler)])
def connection(request, url, data_directory):
    """A connection whose cursors send all by the extended protocol, direct or behind PgBouncer."""
    with ExitStack() as stack:
        if request.param == "direct":
            made = psycopg.connect(**url)
        else:
            there = f"postgresql://{url['user']}@:{url.get('port', 5432)}/texts?host={url['host']}"
            pooled = stack.enter_context(pooling(there, data_directory, settings="SET timezone = UTC"))
            made = psycopg.connect(libpq_url(pooled), prepare_threshold=None)
        stack.enter_context(made)
        made.__dict__["guard"] = Lenient()
        made.cursor_factory = given(psycopg.Cursor)
        yield made
        made.rollback()


def ends_its_transaction(connection, text):
    """Send a text inside a transaction; return whether that is another afterwards, or none."""
    plain = psycopg.Cursor(connection)
    plain.execute("SAVEPOINT s")
    before = plain.execute("SELECT pg_current_xact_id()").fetchone()
    try:
        connection.execute(text)
    except psycopg.Error:
        assert connection.info.transaction_status == TransactionStatus.INERROR
        return False
    else:
        plain.execute("SELECT pg_current_xact_id_if_assigned()")
        return before != plain.fetchone()
    finally:
        connection.rollback()


def is_refused(text):
    return effect_of(text.encode()) in {Effect.COMMITS, Effect.ROLLS_BACK}


def test_text_that_ends_the_transaction_is_refused(connection):
    texts = [before + end for before, end in itertools.product(BEFORE, ENDS)]

    assert [text for text in texts if not ends_its_transaction(connection, text)] == []
    assert [text for text in texts if not is_refused(text)] == []


def test_text_that_ends_the_transaction_on_some_servers_is_refused(connection):
    texts = PREPARES + FROM_16_ON

    is_ended = [ends_its_transaction(connection, text) for text in FROM_16_ON]

    assert is_ended == [connection.info.server_version >= 160_000] * len(FROM_16_ON)
    assert [text for text in texts if not is_refused(text)] == []


def test_text_that_does_no_harm_is_not_refused(connection):
    assert [text for text in HARMLESS if ends_its_transaction(connection, text)] == []
    assert [text for text in HARMLESS if is_refused(text)] == []


def test_text_that_is_not_refused_here_is_refused_by_the_server(connection):
    for text in REFUSED_BY_THE_SERVER:
        with pytest.raises(psycopg.Error):
            connection.execute(text)
        connection.rollback()

    assert [text for text in REFUSED_BY_THE_SERVER if is_refused(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1\0",
        "ROLLBACK --\0\n TO s",
        "/* COMMIT",
        "/* /* */ SELECT 1",
        "ROLLBACK /* TO s",
        "rollback foo",
    ],
)
def test_text_that_is_not_sure_is_refused(text):
    assert is_refused(text)


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", Effect.SETS_ISOLATION),
        ("set local transaction_isolation = 'serializable'", Effect.SETS_ISOLATION),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", Effect.SETS_ISOLATION),
        ("SET TRANSACTION READ ONLY", Effect.SETS_TRANSACTION),
        ("START TRANSACTION DEFERRABLE", Effect.SETS_TRANSACTION),
        ('SET "transaction_read_only" = on', Effect.SETS_TRANSACTION),
        ("SET LOCAL app.note = 'transaction isolation'", Effect.NONE),
        ("PREPARE mine AS SELECT 1", Effect.USES_SESSION_UP),
        ("/**/deallocate all", Effect.USES_SESSION_UP),
        ("DISCARD PLANS", Effect.USES_SESSION_UP),
        ("DO $$ BEGIN END $$", Effect.MAY_USE_SESSION_UP),
        ("CALL mine()", Effect.MAY_USE_SESSION_UP),
    ],
)
def test_text_says_what_it_does_to_the_session(text, effect):
    assert effect_of(text.encode()) is effect
