import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import sqlalchemy.exc

from hookonce.jobs.handlers import HandlerError
from hookonce.receiver.cli.output import exits as exit_codes
from hookonce.receiver.cli.output.exits import exits
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.desk.refusals import (
    Conflict,
    Contradictory,
    Forbidden,
    Invalid,
    NotConfigured,
    NotFound,
    Unauthorized,
    Unavailable,
)
from hookonce.receiver.dev.embedded import EmbeddedError
from hookonce.receiver.encryption import KeyMissing, Tampered
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.database.migrate import LedgerLocked
from hookonce.receiver.ledger.database.schema_version import SchemaBehind
from hookonce.receiver.ledger.queries.event_lookup import Ambiguous
from hookonce.receiver.remote.errors import BadAddress, NoProfile, RemoteError


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "command",
    [
        ("db", "current"),
        ("db", "upgrade"),
        ("events", "list"),
        ("replay", "1"),
        ("stats",),
        ("sweep", "--once"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("url", "code"),
    [
        (None, 78),
        ("postgresql://u:s3cret%zz@127.0.0.1/x", 78),
        ("postgresql://u:s3cret@127.0.0.1:1/x", 69),
    ],
    ids=["no address", "malformed", "away"],
)
def test_command_says_what_is_wrong_with_the_database(hookonce, monkeypatch, command, url, code):
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")
    if url:
        monkeypatch.setenv("DATABASE_URL", url)

    failed = hookonce(*command)

    assert (failed.code, failed.lines) == (code, [])
    assert failed.err.startswith("hookonce: ")
    assert "s3cret" not in failed.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_command_whose_output_has_no_room_says_so_and_nothing_else():
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(
            [sys.executable, "-m", "hookonce.receiver.cli", "help", "exits"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert failed.returncode == 1
    assert failed.stderr == (
        "hookonce: the output can't be written: No space left on device; make room, or write it elsewhere\n"
    )


def test_command_that_can_not_write_says_where_and_what_to_do(hookonce, place):
    (place / "in_the_way").touch()

    failed = hookonce("deploy", "systemd", "--dir", "in_the_way/units")

    assert failed.code == 1
    assert failed.err == (
        "hookonce: in_the_way/units: Not a directory; name another file, or check the directory's permissions\n"
    )


def test_server_that_does_not_start_is_told_with_the_end_of_its_log(capsys):
    with pytest.raises(SystemExit, match="1"), exits():
        raise EmbeddedError("postgres failed; the end of its log:\n    no space left")

    assert capsys.readouterr().err == "hookonce: postgres failed; the end of its log:\n    no space left\n"


def test_exit_codes_are_given_to_classes_that_exist_by_their_names():
    classes = [
        Ambiguous,
        BadAddress,
        ConfigError,
        Conflict,
        Contradictory,
        Forbidden,
        EmbeddedError,
        HandlerError,
        Invalid,
        KeyMissing,
        LedgerLocked,
        LedgerUnavailable,
        NoProfile,
        NotConfigured,
        NotFound,
        RemoteError,
        SchemaBehind,
        Tampered,
        Unauthorized,
        Unavailable,
        psycopg.OperationalError,
        psycopg.errors.InsufficientPrivilege,
        sqlalchemy.exc.OperationalError,
    ]

    assert {each.__name__ for each in classes} == exit_codes.BY_CLASS_NAME.keys()
