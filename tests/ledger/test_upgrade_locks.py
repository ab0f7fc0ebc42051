"""An upgrade that meets a long reader holds up no delivery, and says in the end who was in its way."""

import threading
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.cli import main
from hookonce.receiver.ledger.database import connections, migrate
from hookonce.receiver.ledger.database.live_upgrade import Patience
from hookonce.receiver.ledger.database.migrate import LedgerLocked
from hookonce.receiver.ledger.database.schema_version import REVISION
from tests.support import former_ledgers
from tests.support.waiting import until

SHORT = Patience(lock=timedelta(milliseconds=50), pause=timedelta(milliseconds=10), tries=3)
PATIENT = Patience(lock=timedelta(milliseconds=100), pause=timedelta(milliseconds=300), tries=60)
DELIVERY = """
INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed, status, due_at)
VALUES ('stripe', 'stripe', %s, 'a', '', true, 'received', now())
"""
"""As a receiver of before stores one."""
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@pytest.fixture(params=["0015", "0020"])
def behind(empty_database, request):
    """The URL of a ledger that is some revisions behind, or only the one that swaps tables."""
    former_ledgers.empty(empty_database, request.param)
    return empty_database


@contextmanager
def reading(url, table="hookonce.runs", name="nightly report"):
    """Read a table in a transaction that stays open."""
    with psycopg.connect(url, application_name=name) as reader:
        reader.execute(f"SELECT FROM {table} LIMIT 1")
        yield reader


def test_reader_that_outlasts_all_tries_is_named(behind):
    with reading(behind) as reader:
        process = reader.info.backend_pid
        with pytest.raises(LedgerLocked) as told:
            migrate.upgrade(behind, SHORT)

    assert f"process {process} ('nightly report', role " in str(told.value)
    assert "s old, on runs)" in str(told.value)
    assert migrate.upgrade(behind, SHORT) == REVISION


def test_deliveries_go_on_while_an_upgrade_waits_for_a_reader(behind):
    reached = []
    upgrade = threading.Thread(target=lambda: reached.append(migrate.upgrade(behind, PATIENT)))
    with connections.connect(behind) as intake, psycopg.connect(behind, autocommit=True) as watch:
        with reading(behind, "hookonce.events, hookonce.runs"):
            upgrade.start()
            for number in range(4):
                until(lambda: watch.execute(WAITING).fetchone()[0] > 0, what="the upgrade's wait")
                intake.execute(DELIVERY, [f"evt_{number}"])
        upgrade.join(20)
        status = watch.execute("SELECT status FROM hookonce.event_states").fetchall()

    assert reached == [REVISION]
    assert status == [("received",)] * 4


@pytest.mark.parametrize("behind", ["0015"], indirect=True)
def test_command_says_in_one_line_who_is_in_the_way_and_ends_with_its_own_code(
    behind, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(migrate.upgrade, "__defaults__", (SHORT, migrate.upgrade.__defaults__[1]))
    monkeypatch.setenv("DATABASE_URL", behind)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["hookonce", "db", "upgrade"])

    with reading(behind), pytest.raises(SystemExit) as ended:
        main()

    [line] = capsys.readouterr().err.splitlines()
    assert "nightly report" in line
    assert ended.value.code == 75
