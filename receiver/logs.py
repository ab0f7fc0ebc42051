"""Logging: one JSON object per line on stderr. Bodies, secrets and signatures are never passed to it.

A delivery has one line, with an id of its own (`delivery`) and the ledger ids of its events (`ids`); those are `event`
in the lines about conflicts and runs. A run is named by `event` and `handler`, its attempt by `attempt`; where it
is traced, `trace` is the id of the trace.
"""

import logging
import os
import sys

from pythonjsonlogger.json import JsonFormatter


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


def formatter() -> logging.Formatter:
    """Give what makes a JSON object of a record."""
    return JsonFormatter(
        "%(asctime)s %(levelname)s %(name)s %(message)s",
        rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
    )


def new_id() -> str:
    """Make the id of a delivery, for its line (16 hex digits)."""
    return os.urandom(8).hex()
