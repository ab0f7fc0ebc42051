import json
import re
import shlex

import click

from hookonce.jobs.failures.traceback_capture import captured
from hookonce.receiver.cli.output import tracebacks


def read(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise LookupError("no such\ncustomer\x1b[2J") from error


def raised(text):
    try:
        return read(text)
    except LookupError as error:
        return error


def caught(function, argument):
    try:
        return function(argument)
    except Exception as error:  # noqa: BLE001  whatever it is
        return error


def test_own_frames_are_open_libraries_folded_and_the_error_last():
    lines = [click.unstyle(line) for line in tracebacks.lines(captured(raised("no")), None)]

    (folded,) = [line for line in lines if line.endswith(" frames in json")]
    number = read.__code__.co_firstlineno
    place = "tests/cli/test_traceback_view.py"
    assert lines == [
        f"  {place}:{number + 2} in read",
        "      try:",
        "          return json.loads(text)",
        folded,
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        "which caused",
        f"  {place}:{raised.__code__.co_firstlineno + 2} in raised",
        "      try:",
        "          return read(text)",
        f"  {place}:{number + 4} in read",
        "      except ValueError as error:",
        '          raise LookupError("no such\\ncustomer\\x1b[2J") from error',
        "LookupError: no such",
        "customer\\x1b[2J",
    ]


def test_variables_stand_beneath_their_frame():
    found = captured(caught(read, "no"), with_locals=True)

    lines = [click.unstyle(line) for line in tracebacks.lines(found, None)]

    assert lines[3] == "      text = 'no'"


def test_frames_of_a_library_between_own_ones_are_one_line():
    def split(text):
        return shlex.split(text)

    lines = [click.unstyle(line) for line in tracebacks.lines(captured(caught(split, 7)), None)]

    (folded,) = [line for line in lines if "frame" in line]
    assert folded.endswith(" frames in shlex")


def test_traceback_has_colours_and_nothing_that_a_terminal_would_obey():
    text = "\n".join(tracebacks.lines(captured(raised("no")), None))

    assert "\x1b[31m" in text
    assert set(re.findall(r"\x1b\[[0-9;]*(.)", text)) == {"m"}
