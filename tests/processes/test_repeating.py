"""What repeated work raises is logged: a server that is away in a word, a mistake with its traceback."""

import logging
from datetime import timedelta

import pytest

from hookonce.receiver.processes.repeating import Repeating
from tests.support.waiting import until


class Failing(Repeating):
    expected = (OSError,)

    def __init__(self, error):
        super().__init__("failing", timedelta(hours=1), "nothing was written")
        self.error = error

    def look(self):
        raise self.error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConnectionError("at evt_1"), ("INFO", "nothing was written: ConnectionError", None)),
        (KeyError("slots"), ("ERROR", "nothing was written", KeyError)),
    ],
)
def test_error_is_logged_with_its_traceback_unless_it_is_expected(caplog, error, line):
    caplog.set_level(logging.INFO)

    with Failing(error):
        until(lambda: caplog.records)

    assert [
        (each.levelname, each.message, each.exc_info and each.exc_info[0]) for each in caplog.records
    ] == [line]
