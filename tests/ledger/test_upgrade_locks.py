"""An upgrade that meets a long reader holds up no delivery, and says in the end who was in its way."""

import shutil
import threading
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.cli import main
from hookonce.receiver.ledger.database import connections, migrate, schema_version
from hookonce.receiver.ledger.database.migrate import LedgerLocked, Patience
from hookonce.receiver.ledger.database.schema_version import FIRST
from tests.support.waiting import until

SHORT = Patience(lock=timedelta(milliseconds=50), pause=timedelta(milliseconds=10), tries=3)
PATIENT = Patience(lock=timedelta(milliseconds=100), pause=timedelta(milliseconds=300), tries=60)
SECOND = f"{FIRST}.2"
REVISION = f"""
from alembic import op

revision, down_revision, branch_labels, depends_on = "{SECOND}", "{FIRST}", None, None


def upgrade():
    op.execute("ALTER TABLE hookonce.events ADD COLUMN later text; ALTER TABLE hookonce.runs ADD COLUMN later text")
"""
DELIVERY = """
INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed)
VALUES ('stripe', 'stripe', %s, 'a', '', true)
"""
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
LATER = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'hookonce' AND column_name = 'later'"


@pytest.fixture
def second(tmp_path, monkeypatch):
    """A revision of the tests' own, which this version needs from now on; its file."""
    shutil.copytree(migrate.REVISIONS, tmp_path / "migrations")
    file = tmp_path / "migrations" / "versions" / "0002_of_the_tests.py"
    file.write_text(REVISION)
    monkeypatch.setattr(migrate, "REVISIONS", tmp_path / "migrations")
    monkeypatch.setattr(schema_version, "REVISION", SECOND)
    return file


@pytest.fixture
def behind(database_url, second):
    """The URL of a ledger that lacks that revision."""
    assert second.exists()
    return database_url


@contextmanager
def reading(url, table="hookonce.runs", name="nightly report"):
    """Read a table in a transaction that stays open."""
    with psycopg.connect(url, application_name=name) as reader:
        reader.execute(f"SELECT FROM {table} LIMIT 1")
        yield reader


def later_columns(url):
    with psycopg.connect(url) as connection:
        return connection.execute(LATER).fetchone()[0]


def test_reader_that_outlasts_all_tries_is_named(behind):
    with reading(behind) as reader:
        process = reader.info.backend_pid
        with pytest.raises(LedgerLocked) as told:
            migrate.upgrade(behind, SHORT)

    assert f"process {process} ('nightly report', role " in str(told.value)
    assert "s old, on runs)" in str(told.value)
    assert (migrate.current(behind), later_columns(behind)) == (FIRST, 0)
    assert migrate.upgrade(behind, SHORT) == SECOND
    assert (migrate.current(behind), later_columns(behind)) == (SECOND, 2)


def test_deliveries_go_on_while_an_upgrade_waits_for_a_reader(behind):
    reached = []
    upgrade = threading.Thread(target=lambda: reached.append(migrate.upgrade(behind, PATIENT)))
    patient = {
        "lock": timedelta(seconds=5),
        "statement": timedelta(seconds=5),
    }  # far less than the upgrade is
    with (
        connections.connect(behind, **patient) as intake,
        psycopg.connect(behind, autocommit=True) as watch,
    ):
        with reading(behind, "hookonce.events, hookonce.runs"):
            upgrade.start()
            for number in range(4):
                until(lambda: watch.execute(WAITING).fetchone()[0] > 0, what="the upgrade's wait")
                intake.execute(DELIVERY, [f"evt_{number}"])
        upgrade.join()
        stored = watch.execute("SELECT count(*) FROM hookonce.events").fetchone()[0]

    assert reached == [SECOND]
    assert stored == 4


def test_revision_that_fails_changes_nothing_and_can_be_run_again(behind, second):
    second.write_text(f"{REVISION}    op.execute('SELECT 1/0')\n")
    with pytest.raises(Exception, match="division by zero"):
        migrate.upgrade(behind, SHORT)
    left = migrate.current(behind), later_columns(behind)

    second.write_text(REVISION)
    reached = migrate.upgrade(behind, SHORT)

    assert left == (FIRST, 0)
    assert (reached, later_columns(behind)) == (SECOND, 2)


@pytest.mark.usefixtures("second")
def test_new_ledger_is_brought_to_the_last_revision(empty_database):
    assert migrate.upgrade(empty_database) == SECOND

    assert (migrate.current(empty_database), later_columns(empty_database)) == (SECOND, 2)


def test_command_says_in_one_line_who_is_in_the_way_and_ends_with_its_own_code(
    behind, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(migrate.upgrade, "__defaults__", (SHORT,))
    monkeypatch.setenv("DATABASE_URL", behind)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["hookonce", "db", "upgrade"])

    with reading(behind), pytest.raises(SystemExit) as ended:
        main()

    [line] = capsys.readouterr().err.splitlines()
    assert "nightly report" in line
    assert ended.value.code == 75
