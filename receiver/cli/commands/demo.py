"""`hookonce demo`: the whole stack in a directory of its own, proved on signed samples, and gone again."""

import contextlib
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import show
from hookonce.receiver.dev import demo as stack_demo
from hookonce.receiver.dev.demo import ExpectedOutcome, Found
from hookonce.receiver.dev.log_lines import readable
from hookonce.receiver.dev.stack import free_port, stack

_COLUMNS = ("source", "type", "what came", "answer", "became", "attempts", "effects", "verdict")
LAST_LINES = 40
_FOREIGN = ("HOOKONCE_", "GUNICORN_", "PG", "RQ_")
_FOREIGN_NAMES = ("DATABASE_URL", "REDIS_URL", "WEB_CONCURRENCY", "PORT", "FORWARDED_ALLOW_IPS")


@click.command()
def demo() -> None:
    """Start everything in a temporary directory, send signed samples, check each one's fate, stop everything.

    Reads neither hookonce.toml nor the environment. Exit 0 if all became of every sample that must.
    """
    logging.basicConfig(format="hookonce: %(message)s", level=logging.ERROR)
    found: list[Found] = []
    lines: deque[str] = deque(maxlen=LAST_LINES)
    with _own_place():
        tell("starting PostgreSQL, Valkey, gunicorn and an RQ worker in a temporary directory")
        with stack(free_port(), durable=False) as running:
            stack_demo.prepare(running)

            def play(ended: threading.Event) -> None:
                found.extend(stack_demo.play(running, ended))

            running.run(lambda _, line: lines.append(line), play, until_over=True)
    if not found:
        _explain(lines)
        tell("hookonce: the demo was stopped before it was over")
        sys.exit(1)
    show(_COLUMNS, map(_row, found))
    wrong = sum(not each.is_right for each in found)
    if wrong:
        _explain(lines)
    click.echo(f"{len(found) - wrong} of {len(found)} deliveries became what they must")
    sys.exit(1 if wrong else 0)


@contextmanager
def _own_place() -> Iterator[None]:
    """Work in a temporary directory, with nothing of the user's configuration; this process ends with it."""
    for name in list(os.environ):
        if name.startswith(_FOREIGN) or name in _FOREIGN_NAMES:
            del os.environ[name]
    place = Path(tempfile.mkdtemp(prefix="hookonce-demo-")).resolve()
    data = place / "data"
    try:
        if os.geteuid() == 0:
            place.chmod(0o711)  # PostgreSQL runs as another user
        (place / "hookonce.toml").touch()
        os.environ |= {
            "HOOKONCE_CONFIG": str(place / "hookonce.toml"),
            "HOOKONCE_DATA": str(data),
            "HOOKONCE_HANDLERS": stack_demo.HANDLERS,
        }
        with contextlib.chdir(place):
            yield
    finally:
        if (data / "postgres").is_symlink():  # under a closed parent the cluster is elsewhere
            shutil.rmtree((data / "postgres").resolve(), ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)


def _row(each: Found) -> list[str]:
    fate, must = each.fate, each.sample.fate
    return [
        each.sample.source,
        each.sample.type,
        each.sample.what,
        _compared(each.answer, each.sample.answer),
        _compared(fate.status, must.status),
        _compared(_attempts(fate), _attempts(must)),
        _compared(str(fate.effects), str(must.effects)),
        "ok" if each.is_right else "fail",
    ]


def _attempts(fate: ExpectedOutcome) -> str:
    return str(fate.attempts) if fate.attempts else "-"


def _compared(found: str, expected: str) -> str:
    return found if found == expected else f"{found}, not {expected}"


def _explain(lines: deque[str]) -> None:
    for line in lines:
        shown = readable(line)
        if shown is not None:
            tell(shown)
