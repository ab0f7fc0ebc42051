import json
import re

import click

from hookonce.jobs.traceback_text import traceback_text
from hookonce.receiver.cli.output.tracebacks import own_frames_first


def read(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise LookupError("no such\ncustomer\x1b[2J") from error


def shown(error):
    return [click.unstyle(line) for line in own_frames_first(traceback_text(error)).splitlines()]


def raised(text):
    try:
        return read(text)
    except LookupError as error:
        return error


def test_own_frames_come_first_and_what_libraries_did_after():
    lines = shown(raised("no"))

    number = read.__code__.co_firstlineno
    (place,) = {line.rpartition(":")[0] for line in lines if line.endswith(" in read")}
    assert lines[:9] == [
        "    json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        f"{place}:{number + 2} in read",
        "          return json.loads(text)",
        "    which caused",
        "    LookupError: no such",
        "    customer\\x1b[2J",
        f"{place}:{raised.__code__.co_firstlineno + 2} in raised",
        "          return read(text)",
        f"{place}:{number + 4} in read",
    ]
    libraries = lines.index("    in libraries:")
    assert lines[libraries + 1] == lines[0]
    assert min(number for number, line in enumerate(lines) if "json/" in line) > libraries


def test_traceback_has_colours_and_nothing_that_a_terminal_would_obey():
    text = own_frames_first(traceback_text(raised("no")))

    assert "\x1b[31m" in text
    assert set(re.findall(r"\x1b\[[0-9;]*(.)", text)) == {"m"}


def test_text_that_is_no_traceback_is_shown_as_it_is():
    assert click.unstyle(own_frames_first("key abc is missing")) == "    key abc is missing"
