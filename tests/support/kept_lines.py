"""This process keeps what handlers write, as a worker does."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hookonce.jobs.failures.error_summary import whole_message_of
from hookonce.receiver.monitoring import log_capture


@contextmanager
def keeping_lines(modules: tuple[str, ...] = ("shop.handlers",)) -> Iterator[None]:
    """Keep lines of these modules' packages from INFO on; all is as before after the block."""
    root = logging.getLogger()
    handlers, made = root.handlers[:], logging.getLoggerClass()
    with pytest.MonkeyPatch.context() as patch:
        for name, nothing in (("level", 0), ("packages", frozenset())):
            patch.setattr(log_capture.Installed, name, nothing)  # it is once in a process
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, getattr(sys, name))
        log_capture.install("info", modules, whole_message_of)
        yield
    log_capture.end()
    root.handlers[:] = handlers
    logging.setLoggerClass(made)
