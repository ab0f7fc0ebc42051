import logging
import sys
import threading
from contextlib import ExitStack
from functools import partial

import pytest
from psycopg.errors import UniqueViolation

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.monitoring import log_capture
from hookonce.receiver.monitoring.log_capture import MAX_CHARACTERS, MAX_LINE_LENGTH, MAX_LINES, Lines
from tests.support.kept_lines import keeping_lines
from tests.support.waiting import at_once

log = logging.getLogger("shop")


@pytest.fixture
def captured():
    """A function that has this process keep lines, as a worker does, and begins; all is as before afterwards."""
    with (
        ExitStack() as until_the_end
    ):  # begun by the test: pytest puts other streams in their place before it

        def install():
            until_the_end.enter_context(keeping_lines())
            return log_capture.begin()

        yield install


@pytest.fixture
def heard():
    """A function that adds a handler to the root logger, as a module may at its import; returns its records."""
    added, records = logging.Handler(), []
    added.emit = records.append
    yield lambda: logging.getLogger().addHandler(added) or records
    logging.getLogger().removeHandler(added)


def written(lines):
    return [(line.level, line.logger, line.text) for line in lines.taken()[0]]


def test_what_a_handler_prints_and_logs_is_kept_in_order(captured):
    lines = captured()
    sys.stdout.write("looking up cus_9\n")
    log.info("crediting %s", "in_1")
    sys.stderr.write("half of ")
    sys.stderr.write("a line\nand")
    log.debug("too little to be told")
    log_capture.end()
    sys.stdout.write("of nobody\n")

    assert written(lines) == [
        ("", "stdout", "looking up cus_9"),
        ("info", "shop", "crediting in_1"),
        ("", "stderr", "half of a line"),
        ("", "stderr", "and"),
    ]


def test_what_a_database_says_in_detail_of_a_logged_error_is_left_out(captured, database_url):
    lines = captured()
    insert = "CREATE TEMPORARY TABLE t (mail text UNIQUE); INSERT INTO t VALUES ('ada@a.eu'), ('ada@a.eu')"
    try:
        with connections.connect(database_url) as connection:
            connection.execute(insert)
    except UniqueViolation:
        log.exception("not stored")

    ((_, _, text),) = written(lines)
    assert text.startswith("not stored (UniqueViolation: duplicate key value violates unique constraint")
    assert "ada@" not in text


def test_line_of_a_logger_that_writes_to_stderr_is_kept_once(captured):
    captured()
    handler = logging.StreamHandler(sys.stderr)
    log.addHandler(handler)
    try:
        lines = log_capture.begin()
        log.warning("once")
    finally:
        log.removeHandler(handler)

    assert written(lines) == [("warning", "shop", "once")]


def test_slots_are_told_apart_by_their_context(captured):
    captured()
    found = {}
    barrier = threading.Barrier(2, timeout=10)

    def slot(name):
        lines = log_capture.begin()
        barrier.wait()
        sys.stdout.write(f"of {name}\n")
        log.info("of %s", name)
        found[name] = written(lines)

    at_once(*(partial(slot, name) for name in "ab"))

    assert {name: [text for *_, text in lines] for name, lines in found.items()} == {
        "a": ["of a", "of a"],
        "b": ["of b", "of b"],
    }


def test_arguments_that_do_not_fit_harm_nobody(captured):
    lines = captured()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging, "raiseExceptions", False)
        log.info("%d", "one")

    assert written(lines) == [("info", "shop", "%d")]


def test_library_that_was_quiet_stays_so(captured):
    lines = captured()
    logging.getLogger("httpx").info("GET https://example.com/?key=sk_1")
    logging.getLogger("sqlalchemy.engine").info("SELECT secrets")
    logging.getLogger("hookonce.jobs").error("ours")
    logging.getLogger("httpx").warning("slow")

    assert written(lines) == [("warning", "httpx", "slow")]


def test_handler_that_is_added_later_hears_what_it_would_have_heard(captured, heard):
    lines = captured()
    records = heard()
    library, made_later = logging.getLogger("httpx"), logging.getLogger("shop.made_later")
    for each in (library, log, made_later):
        each.info("quiet")
        each.warning("loud")

    assert [(each.name, each.msg) for each in records] == [
        ("httpx", "loud"),
        ("shop", "loud"),
        ("shop.made_later", "loud"),
    ]
    assert [(name, text) for _, name, text in written(lines)] == [
        ("httpx", "loud"),
        ("shop", "quiet"),
        ("shop", "loud"),
        ("shop.made_later", "quiet"),
        ("shop.made_later", "loud"),
    ]
    assert {each.level for each in (library, log, made_later)} == {logging.NOTSET}


def test_library_that_a_module_turns_up_later_is_not_kept(captured):
    lines = captured()
    library = logging.getLogger("httpx")
    library.setLevel(logging.DEBUG)
    try:
        library.info("GET https://example.com/?key=sk_1")
    finally:
        library.setLevel(logging.NOTSET)

    assert written(lines) == []


def test_filter_and_disabling_of_a_logger_hold_for_what_is_kept(captured):
    lines = captured()

    def masked(record):
        record.msg = record.msg.replace("sk_1", "…")
        return True

    log.addFilter(masked)
    try:
        log.info("key=sk_1")
        log.disabled = True
        log.info("nothing")
    finally:
        log.removeFilter(masked)
        log.disabled = False

    assert written(lines) == [("info", "shop", "key=…")]


def test_nothing_is_kept_where_it_is_off():
    stdout, made = sys.stdout, logging.getLoggerClass()

    log_capture.install("off", ["shop.handlers"], str)

    assert (sys.stdout, logging.getLoggerClass()) == (stdout, made)
    assert log_capture.begin() is None


def many(count, text="line", second=0.0):
    lines = Lines()
    for number in range(count):
        lines._began -= second  # noqa: SLF001  instead of waiting
        lines.add("", "stdout", f"{text} {number}")
    return lines.taken()


def test_first_and_last_lines_of_very_many_are_kept():
    kept, left_out = many(2_000, second=0.01)

    assert len(kept) == MAX_LINES
    assert left_out == 1_500
    assert (kept[0].text, kept[249].text, kept[250].text, kept[-1].text) == (
        "line 0",
        "line 249",
        "line 1750",
        "line 1999",
    )


def test_lines_of_one_second_are_bounded():
    kept, left_out = many(1_000)

    assert (len(kept), left_out) == (log_capture.MAX_LINES_PER_SECOND, 800)


def test_long_lines_are_cut_and_all_together_bounded():
    kept, left_out = many(400, "x" * 10_000, second=0.01)

    assert all(len(line.text) == MAX_LINE_LENGTH + 1 for line in kept)
    assert sum(len(line.text) for line in kept) <= MAX_CHARACTERS
    assert left_out == 400 - len(kept)


@pytest.mark.parametrize("secret", ["whsec_abcdefgh", "private key " * 300], ids=len)
def test_secret_is_masked_where_a_line_is_cut(secret):
    lines = Lines()
    lines.add("info", "shop", "x" * (MAX_LINE_LENGTH - 8) + secret)
    ((kept,), _) = lines.taken(lambda text: text.replace(secret, "[secret]"))

    assert kept.text.endswith("xx[secret]")


def test_line_that_never_ends_takes_no_memory():
    lines = Lines()
    for _ in range(1_000):
        lines.write("stdout", "x" * 1_000)

    assert max(map(len, lines._pending.values())) < 5 * MAX_LINE_LENGTH  # noqa: SLF001
    assert [len(line.text) for line in lines.taken()[0]] == [MAX_LINE_LENGTH + 1]
