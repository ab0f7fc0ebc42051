"""Findings of `hookonce doctor` about handlers: it has a worker load them, in a process of its own, and end.

So they are imported as a worker imports them, and whatever they do meanwhile (hang, crash, start threads) they don't
do to us.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.samples import files

TIME_LIMIT = timedelta(seconds=30)
"""How long the modules may take to import."""

_MAX_SIZE = 65536
_IS_A_TYPO = 0.85
"""From which likeness on, by difflib, a type is taken for another that was mistyped."""
# Without .pyc files: who looks leaves nothing behind.
_COMMAND = (sys.executable, "-B", "-m", "hookonce.receiver.cli", "worker", "--check")


def handlers(settings: Settings) -> Iterator[Finding]:
    """Yield what a worker here would report at its start, if it has handlers or targets of alerts."""
    if settings.handlers or settings.alerts.are_sent:
        status, said = _load()
        if settings.handlers or "handlers" not in said:
            yield _judge(status, said)
        yield from _typos(settings, said.get("takes", ()))


def _typos(settings: Settings, takes: Iterable[Sequence[str]]) -> Iterator[Finding]:
    """Name types that a sender is not known to have, and that resemble one it has."""
    for handler, place, kind in takes:
        source = settings.sources.get(place)
        known = files.types(source.provider.name if source else place)
        close = get_close_matches(kind, known, n=1, cutoff=_IS_A_TYPO)
        if close and "*" not in kind and kind not in known:
            text = f"{handler} takes '{kind}', which no sample of {place} has; did you mean '{close[0]}'?"
            yield Finding("warn", "handlers", text)


def _load() -> tuple[int | None, dict[str, Any]]:
    """Return how a worker that only loads its handlers has ended, None if not in time, and what it said."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)  # whatever the modules start may hold the other end
        child = subprocess.Popen(  # noqa: S603  our own command
            [*_COMMAND, str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[writer],
            process_group=0,
        )
        try:
            status = child.wait(TIME_LIMIT.total_seconds())
        except subprocess.TimeoutExpired:
            return None, {}
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        return status, _said(reader)
    finally:
        os.close(reader)
        os.close(writer)


def _said(reader: int) -> dict[str, Any]:
    """Return what it wrote; nothing if it was ended before."""
    with suppress(BlockingIOError, ValueError):
        found = json.loads(os.read(reader, _MAX_SIZE))
        return found if isinstance(found, dict) else {}
    return {}


def _judge(status: int | None, said: dict[str, Any]) -> Finding:
    if status is None:
        limit = f"{TIME_LIMIT.total_seconds():.0f} s"
        text = f"their modules do not import within {limit}; what they wait for a worker waits for, too"
        return Finding("fail", "handlers", text)
    if "handlers" in said:
        number = said["handlers"]
        if not number:
            return Finding(
                "warn", "handlers", "no function of these modules is decorated with `@on`; add one"
            )
        return Finding("ok", "handlers", f"{number} import{'s' if number == 1 else ''}")
    if "handler_error" in said:
        return Finding("fail", "handlers", f"{said['handler_error']}; `hookonce worker` will not start")
    if "config_error" in said:  # a secret of the worker's, say, that need not be here
        return Finding("warn", "handlers", f"a worker would not start here: {said['config_error']}")
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return Finding("fail", "handlers", f"importing their modules ends the process ({how}), a worker's too")
