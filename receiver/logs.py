"""Logging: one JSON object per line on stderr. Bodies, secrets and signatures are never passed to it."""

import logging
import os
import sys

from pythonjsonlogger.json import JsonFormatter


def configure() -> None:
    """Send every logger to stderr as JSON; HOOKONCE_LOG_LEVEL (default WARNING) says how much.

    At INFO there is a line per delivery and per run.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter(
            "%(asctime)s %(levelname)s %(name)s %(message)s",
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
        )
    )
    level = os.environ.get("HOOKONCE_LOG_LEVEL", "WARNING").upper()
    known = logging.getLevelNamesMapping()
    logging.basicConfig(level=known.get(level, logging.WARNING), handlers=[handler], force=True)
    logging.getLogger("rq").setLevel(logging.WARNING)  # a dozen lines per job at INFO
