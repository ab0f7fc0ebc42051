"""Logging: one JSON object per line on stderr. Bodies, secrets and signatures are never passed to it.

A delivery has one line, with an id of its own (`delivery`) and the ledger ids of its events (`ids`); those are `event`
in the lines about conflicts and runs. A run is named by `event` and `handler`, its attempt by `cycle` (1, and one more
with each replay) and `attempt`, the lease it is made under by a hash of its `token`; where it is traced, `trace` is the
id of the trace. Ids and accounts are the sender's words: with `[receiver] log_ids = "hash"` they are hashed
(docs/reference/observability.md has all fields). An `Idempotency-Key` is hashed always.

A client that reaches the port can make us warn, and a log that is flooded hides what matters and costs money. So the
loggers of `limited` write a few lines a minute of each kind and source; the next one after says in `suppressed` how
many were left out. The INFO lines of deliveries, rejected ones too, are the access log and complete: they are off by
default, and who turns them on wants to find each delivery.
"""

import hashlib
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from pythonjsonlogger.json import JsonFormatter

LINES_PER_MINUTE = 10
FINGERPRINT_DIGITS = 12
"""Hex digits of a fingerprint or of a hashed token: enough to compare two lines, and no way back."""
MAX_ID = 100
"""Characters of an id that a line holds."""
_MINUTE = 60.0  # seconds
_DETAIL = re.compile(
    r"^DETAIL:.*?(?=\n\n(?:During handling|The above exception)|\Z)", re.MULTILINE | re.DOTALL
)


class _Ids:
    hashed = False


def hash_ids(*, hashed: bool) -> None:
    """Have this process hash ids and accounts in its lines from now on, or not."""
    _Ids.hashed = hashed


def shown(text: str) -> str:
    """Return an id or an account as a line may hold it: shortened, or hashed (SHA-256, 16 hex digits)."""
    return hashed(text) if _Ids.hashed else text[:MAX_ID]


def hashed(text: str) -> str:
    """Return what stands in a line for an `Idempotency-Key`, and for an id where those are hashed."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest(secret: bytes) -> str:
    """Return what tells tokens apart in a log."""
    return hashlib.sha256(secret).hexdigest()[:FINGERPRINT_DIGITS]


class RateLimit(logging.Filter):
    """Lets so many warnings and errors of a kind through in a minute, all below WARNING always.

    A kind is the message before its arguments are put in, the field `source`, and the class of the exception whose
    traceback is shown: so there are as many kinds as the code and the configuration have, whatever strangers send.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._minutes: dict[Hashable, tuple[float, int]] = {}  # when it began, and how many lines it had

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write this line."""
        if record.levelno < logging.WARNING:
            return True
        kind = (record.msg, getattr(record, "source", None), record.exc_info and record.exc_info[0])
        with self._lock:
            now = self._clock()
            began, lines = self._minutes.get(kind, (now, 0))
            if now - began >= _MINUTE:
                if lines > LINES_PER_MINUTE:
                    record.suppressed = lines - LINES_PER_MINUTE
                began, lines = now, 0
            self._minutes[kind] = (began, lines + 1)
        return lines < LINES_PER_MINUTE


def limited(name: str) -> logging.Logger:
    """Return the logger of a module whose warnings strangers can cause."""
    logger = logging.getLogger(name)
    if not any(isinstance(each, RateLimit) for each in logger.filters):
        logger.addFilter(RateLimit())
    return logger


def configure() -> None:
    """Send every logger to stderr as JSON; HOOKONCE_LOG_LEVEL (default WARNING) says how much.

    At INFO there is a line per delivery and per run.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter())
    level = os.environ.get("HOOKONCE_LOG_LEVEL", "WARNING").upper()
    known = logging.getLevelNamesMapping()
    logging.basicConfig(level=known.get(level, logging.WARNING), handlers=[handler], force=True)
    logging.getLogger("rq").setLevel(logging.WARNING)  # a dozen lines per job at INFO
    logging.getLogger("urllib3").setLevel(logging.INFO)  # at DEBUG it logs URLs, which may hold secrets
    logging.getLogger("botocore").setLevel(
        logging.INFO
    )  # at DEBUG it logs requests, with bodies and signatures


class _Formatter(JsonFormatter):
    """Leaves PostgreSQL's DETAIL out of tracebacks: there it quotes the row, with keys, ids and bodies."""

    def formatException(self, ei: Any) -> str:  # noqa: N802, ANN401  logging's own
        return _DETAIL.sub("DETAIL:  (left out)", str(super().formatException(ei)))


def formatter() -> logging.Formatter:
    """Return what makes a JSON object of a record."""
    return _Formatter(
        "%(asctime)s %(levelname)s %(name)s %(message)s",
        rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
    )


def new_id() -> str:
    """Return a new id of a delivery, for its line (16 hex digits)."""
    return os.urandom(8).hex()
