import os
import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

from hookonce import GiveUp
from hookonce.jobs.failures.error_summary import MAX_MESSAGE_LENGTH
from hookonce.jobs.failures.traceback_capture import MAX_LENGTH, captured
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.store import store
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback, parse
from hookonce.receiver.privacy.at_rest import sealed
from tests.support.new_event import new_event

KEYRING = Keyring([os.urandom(32)])
CARD = "4242-4242"
COSTLY = "\N{GRINNING FACE}" * 500
EMAIL = "ann@\nDETAIL:  example\nHINT: com"


def raised(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:  # noqa: BLE001  whatever it is
        return error
    raise AssertionError("nothing was raised")


def kept(inbox, keyring=None):
    """The tracebacks as they are shown, oldest first."""
    return [
        f.traceback
        for f in event_details.detail(inbox.connection, 1, keyring or inbox.settings.keyring)
        .with_content()
        .failures
    ]


def deep(*_):
    charge({})


def charge(order):
    try:
        return order["customer"]
    except KeyError as error:
        raise LookupError("no such customer") from error


def test_failed_attempt_keeps_its_whole_traceback_with_its_causes(inbox):
    inbox.on(deep, attempts=2)
    inbox.deliver("a")

    inbox.work()

    first, second = kept(inbox)
    assert first == second
    cause, _, effect = first.partition(
        "\nThe above exception was the direct cause of the following exception:\n\n"
    )
    assert cause.endswith("in charge\n    return order[\"customer\"]\nKeyError: 'customer'\n")
    lines = effect.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{__file__}", line {deep.__code__.co_firstlineno + 1}, in deep'
    assert lines[-1] == "LookupError: no such customer"


def test_time_limit_and_giving_up_keep_theirs(inbox):
    def slow(*_):
        while True:
            pass

    def hopeless(*_):
        raise GiveUp("never")

    inbox.on(slow, attempts=1, timeout=timedelta(seconds=0.1))
    inbox.on(hopeless)
    inbox.deliver("a")

    inbox.work()

    said = "\n".join(kept(inbox))
    assert "in slow\n" in said
    assert "took longer than 0.1 s" in said
    assert "in hopeless\n" in said


def insert_twice(_, tx):
    for _ in range(2):
        tx.execute(text("INSERT INTO people VALUES (:email)"), {"email": EMAIL})


def tell_of_it(event, tx):
    try:
        insert_twice(event, tx)
    except IntegrityError as error:
        raise ValueError(str(error)) from None


@pytest.mark.parametrize("handler", [insert_twice, tell_of_it])
def test_values_in_a_message_of_the_database_are_kept_only_where_sealed(inbox, handler):
    inbox.connection.execute("CREATE TABLE people (email text UNIQUE)")
    inbox.on(handler, attempts=1)
    inbox.deliver("a")
    inbox.work()

    ((error,),) = inbox.rows("SELECT error FROM hookonce.failures")
    (clear,) = kept(inbox)
    for said in (error, clear):
        assert "UniqueViolation" in said
        assert "DETAIL:  (left out" in said
        assert not [part for part in ("ann@", "example", "HINT: com") if part in said]


def test_sealed_traceback_tells_all_but_parameters_and_opens_for_its_run_only(inbox):
    inbox.settings = replace(inbox.settings, keyring=KEYRING)
    inbox.connection.execute("CREATE TABLE people (email text UNIQUE)")
    inbox.on(insert_twice, attempts=2)
    store(inbox.connection, [sealed(new_event("a"), KEYRING)])
    inbox.work()

    assert b"people" not in inbox.rows("SELECT traceback FROM hookonce.failures")[0][0]
    assert all("Key (email)=(ann@" in each for each in kept(inbox))
    assert "ann@" not in inbox.rows("SELECT error FROM hookonce.failures")[0][0]

    inbox.connection.execute(
        "UPDATE hookonce.failures SET traceback = (SELECT traceback FROM hookonce.failures WHERE attempt = 2)"
    )
    shown = event_details.detail(inbox.connection, 1, KEYRING).with_content().failures
    assert [failure.traceback is None for failure in shown] == [True, False]
    assert "changed or moved" in shown[0].unreadable
    assert (
        "not configured here"
        in event_details.detail(inbox.connection, 1, Keyring()).with_content().failures[1].unreadable
    )


def test_parameters_of_a_statement_on_an_engine_of_the_handlers_own_are_left_out(inbox):
    engine = create_engine("sqlite://")

    def elsewhere(*_):
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO nowhere VALUES (:card)"), {"card": CARD})

    def and_tell(*_):
        try:
            elsewhere()
        except Exception as error:
            raise ValueError(f"could not: {error}") from error

    inbox.on(and_tell, attempts=1)
    inbox.deliver("a")

    inbox.work()
    engine.dispose()

    (shown,) = kept(inbox)
    assert "INSERT INTO nowhere" in shown
    assert "4242" not in shown + inbox.rows("SELECT error FROM hookonce.failures")[0][0]


def test_secret_of_a_source_is_masked_in_an_error_before_that_is_cut(inbox):
    def careless(*_):
        raise ConnectionError(f"{'x' * (MAX_MESSAGE_LENGTH - 30)}whsec_abcdefgh")

    environ = {"DATABASE_URL": inbox.settings.database_url, "REDIS_URL": inbox.settings.redis_url}
    inbox.settings = load_settings(
        environ | {"HOOKONCE_CONFIG": "/dev/null", "HOOKONCE_SECRET__STRIPE": "whsec_abcdefgh"}
    )
    inbox.on(careless, attempts=1)
    inbox.deliver("a")

    inbox.work()

    ((error,),) = inbox.rows("SELECT error FROM hookonce.failures")
    for said in (error, kept(inbox)[0]):
        assert "xx[secret]" in said
        assert "whsec" not in said


def test_secret_is_masked_where_a_line_of_code_is_cut(tmp_path):
    file = tmp_path / "shop.py"
    file.write_text(f"raise ValueError()  # {'x' * 170}whsec_abcdefgh\n")
    code = compile(file.read_text(), file, "exec")

    found = captured(raised(exec, code), cleaned=lambda text: text.replace("whsec_abcdefgh", "[secret]"))

    assert "xx[secret" in found.text
    assert "whsec" not in found.text


def recurse(depth):
    return recurse_on(depth - 1) if depth else charge({})


def recurse_on(depth):
    return recurse(depth - 1)


def test_oldest_frames_are_cut_first():
    shown = captured(raised(recurse, 300)).text

    assert "older frames are left out" in shown
    assert shown.endswith("LookupError: no such customer\n")
    assert shown.count("in recurse") > 20
    assert "in charge\n" in shown


def chain(length):
    error = ValueError("the first")
    for number in range(length):
        error = raised(wrap, error, number)
    return error


def wrap(error, number):
    raise RuntimeError(f"number {number}") from error


def circle():
    first, second = ValueError("one"), ValueError("two")
    first.__context__, second.__context__ = second, first
    return raised(throw, first)


def throw(error):
    raise error


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError

    @property
    def __notes__(self):
        raise RuntimeError


def group():
    inner = ExceptionGroup("inner", [raised(charge, {}) for _ in range(30)])
    return raised(throw, ExceptionGroup("both", [inner, raised(throw, ValueError("x" * 100_000))]))


def wide():
    inner = [ExceptionGroup("inner", [ValueError("x" * 5_000) for _ in range(9)]) for _ in range(9)]
    return raised(wrap_all, ExceptionGroup("wide", inner))


def costly():
    """Groups that come from groups, of errors that come from errors: each says what JSON spells in many bytes."""
    error = ValueError(COSTLY)
    for _ in range(4):
        inner = [chained(ValueError(COSTLY)) for _ in range(4)]
        error = raised(raise_from, ExceptionGroup(COSTLY, inner), error)
    return error


def chained(error):
    for _ in range(4):
        error = raised(raise_from, ValueError(COSTLY), error)
    return error


def raise_from(error, cause):
    raise error from cause


def wrap_all(error):
    raise RuntimeError("and then") from error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (lambda: chain(5000), ["ValueError: the first", "number 4999", "more exceptions between these"]),
        (circle, ["ValueError: one", "ValueError: two"]),
        (costly, ["ExceptionGroup: \N{GRINNING FACE}"]),
        (lambda: raised(throw, ValueError("x" * 1_000_000)), ["ValueError: xxx"]),
        (
            group,
            [
                "ExceptionGroup: both",
                "LookupError: no such customer",
                "KeyError: 'customer'",
                "ValueError: xxx",
            ],
        ),
        (wide, ["ExceptionGroup: wide", "RuntimeError: and then"]),
        (lambda: raised(recurse, 10**6), ["RecursionError: maximum recursion depth exceeded"]),
    ],
    ids=["long chain", "circle", "costly", "long message", "groups", "many long messages", "recursion"],
)
def test_traceback_of_any_size_is_kept_within_its_limit(error, says):
    found = captured(error())

    assert len(found.as_json) <= MAX_LENGTH
    assert parse(found.as_json) == found
    assert [each for each in says if each not in found.text] == []


def test_frames_tell_the_users_files_from_libraries_and_have_lines_of_code(inbox):
    inbox.on(deep, attempts=1)
    inbox.deliver("a")

    inbox.work()

    (failure,) = event_details.detail(inbox.connection, 1, inbox.settings.keyring).with_content().failures
    cause, effect = failure.frames.errors
    assert (cause.link, effect.link) == ("cause", "")
    assert [(frame.function, frame.is_users) for frame in effect.frames] == [("deep", True), ("charge", True)]
    assert effect.frames[-1].path == __file__
    assert effect.frames[-1].code == (
        "def charge(order):",
        "    try:",
        '        return order["customer"]',
        "    except KeyError as error:",
        '        raise LookupError("no such customer") from error',
    )
    assert failure.traceback == Traceback((cause, effect)).text


@pytest.mark.parametrize(
    "kept", [b"Traceback", b'{"errors": 7}', b'{"errors":[{"told":1}]}', b'{"errors":[', b"\xff"]
)
def test_what_is_no_data_of_a_traceback_is_none(kept):
    assert parse(kept) is None


def test_error_that_can_not_be_told_costs_its_traceback_and_nothing_else(inbox):
    inbox.on(lambda *_: throw(UnspeakableError()), attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.rows("SELECT status FROM hookonce.run_states") == [("dead",)]
    assert kept(inbox) == [None]
    assert sys.exc_info() == (None, None, None)


def test_error_of_our_own_has_no_traceback(inbox):
    inbox.on(lambda *_: object(), attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert [each for each in kept(inbox) if each and "hookonce/jobs" in each] == []


def test_traceback_is_shown_for_the_newest_failures_only(inbox):
    inbox.deliver("a")
    inbox.connection.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback) "
        "SELECT 1, 'credit', 1, n, '', %s FROM generate_series(1, %s) AS n",
        [Traceback((Raised("broken"),)).as_json, event_details.MAX_TRACEBACKS + 2],
    )

    assert kept(inbox) == [None, None] + ["broken\n"] * event_details.MAX_TRACEBACKS
