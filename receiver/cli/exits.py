"""Exit codes, and how errors become them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from errno import EDQUOT, EFBIG, EIO, ENOSPC

import click


class Exit(IntEnum):
    """What the shell is told."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    PARTIAL = 3
    NOT_FOUND = 4
    DATABASE_UNREACHABLE = 69
    BAD_CONFIGURATION = 78
    INTERRUPTED = 130


_NO_ROOM = {EDQUOT, EFBIG, EIO, ENOSPC}

_BY_NAME = {
    "ConfigError": Exit.BAD_CONFIGURATION,
    "SchemaBehind": Exit.BAD_CONFIGURATION,
    "HandlerError": Exit.BAD_CONFIGURATION,
    "EmbeddedError": Exit.FAILURE,
    "LedgerUnavailable": Exit.DATABASE_UNREACHABLE,
    "OperationalError": Exit.DATABASE_UNREACHABLE,
    "NotFound": Exit.NOT_FOUND,
    "KeyMissing": Exit.BAD_CONFIGURATION,
    "Damaged": Exit.FAILURE,
    "Ambiguous": Exit.USAGE,
}
"""By class name, because importing the classes would import what `--help` does not need."""


@contextmanager
def exits() -> Iterator[None]:
    """Turn known errors into a line on stderr and an exit code; let the rest show its traceback."""
    try:
        yield
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(Exit.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is not None:
            where = click.format_filename(error.filename)
            said = f"{where}: {error.strerror}; name another place, or see to who may write there"
        elif error.errno in _NO_ROOM:
            _write_no_more()
            said = f"the output can't be written: {error.strerror}; make room, or write it elsewhere"
        else:
            raise
        click.echo(f"hookonce: {said}", err=True)
        sys.exit(Exit.FAILURE)
    except Exception as error:
        code = next((_BY_NAME[k.__name__] for k in type(error).__mro__ if k.__name__ in _BY_NAME), None)
        if code is None:
            raise
        click.echo(f"hookonce: {_told(error)}", err=True)
        sys.exit(code)


def _write_no_more() -> None:
    """Let what stdout still holds go nowhere: Python would try once more at its end, and say so."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: Exception) -> str:
    mistakes = getattr(error, "mistakes", None)
    if mistakes:
        return "the configuration has mistakes:\n" + "\n".join(f"  - {mistake}" for mistake in mistakes)
    cause = getattr(error, "orig", None)  # what SQLAlchemy wraps
    if cause:
        return f"PostgreSQL does not answer: {_told(cause)}"
    said = str(error).strip()
    return said if type(error).__name__ == "EmbeddedError" else said.split("\n")[0]  # with the end of a log
