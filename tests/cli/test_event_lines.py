"""What `events list` and `events show` look like on a terminal of 80 columns."""

import json
import os
import pty
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.receiver.cli.event_listing import print_events
from hookonce.receiver.cli.output import event_lines
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.events import Failure
from hookonce.receiver.desk.listed_events import ListedEvent
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback
from tests.support import desk

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
FAILED = "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error)"
COLOR = re.compile(r"\x1b\[[0-9;]*m")
STRIPE, UUID = "evt_1NXWPnJGmVkcnBTw3xLzQ0aB", "72d3162e-cc78-11e3-81ab-4c9367dc0958"


def event(number=7, event_id=STRIPE, source="stripe", kind="invoice.paid", status="done", deliveries=1):
    at = NOW - timedelta(minutes=3)
    return ListedEvent(
        id=number,
        source=source,
        provider=source,
        event_id=event_id,
        type=kind,
        account=None,
        status=status,
        due_at=None,
        received_at=at,
        occurred_at=None,
        deliveries=deliveries,
        repeat_of=None,
    )


def shown(events, notes=(), width=80):
    return [COLOR.sub("", line) for line in event_lines.lines(events, dict(notes), width, NOW)]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "now"),
        (5, "5s ago"),
        (61, "1m ago"),
        (7200, "2h ago"),
        (90000, "1d ago"),
        (-301, "in 5m"),
        (None, "-"),
    ],
)
def test_time_is_told_in_its_largest_unit(seconds, said):
    assert ago(None if seconds is None else NOW - timedelta(seconds=seconds), NOW) == said


def test_line_fits_eighty_columns_whatever_is_long():
    events = [
        event(123456, deliveries=3),
        event(8, UUID, "a-source-of-a-long-name", "customer.subscription.trial_will_end", "waiting"),
        event(9, "unreadable-" + "0f" * 46),
    ]

    heading, first, second, third = shown(events)

    assert max(map(len, (heading, first, second, third))) <= 80
    assert (STRIPE in first, first.endswith("×3"), first.count("3m ago")) == (True, True, 1)  # noqa: RUF001
    assert re.search(f"customer.su…  {UUID[:18]}[-0-9a-f]*…[0-9a-f]*{UUID[-8:]}$", second)
    assert re.search("unreadable-0f0f0f0f[0f]*…[0f]+$", third)


def test_long_id_gives_way_before_source_and_type():
    alert = event(8, "alert_test_f86653769023b8c5d172d512804094", "hookonce", "alert.resolved")

    _, first, second = shown([event(9), alert])

    assert "hookonce  alert.resolved  alert_test_f8" in second
    assert STRIPE in first


def test_two_accounts_of_one_sender_are_told_apart_where_there_is_little_room():
    kind = "customer.subscription.updated"

    _, *lines = shown(
        [event(number, source=f"stripe-{name}", kind=kind) for number, name in ((101, "eu"), (102, "us"))],
        width=70,
    )

    assert [re.search(r"\S*…(\w+) ", line)[1] for line in lines] == ["eu", "us"]


def test_short_events_stand_in_one_line_each():
    assert shown([event()]) == [
        "ID  STATUS  RECEIVED  SOURCE  TYPE          EVENT ID",
        f" 7  done    3m ago    stripe  invoice.paid  {STRIPE}",
    ]


def test_cause_stands_in_its_line_before_the_sender_s_id_which_gives_way():
    notes = {7: ["shop.credit: KeyError: 'x' " + "y" * 200]}

    heading, line = shown([event(status="dead")], notes)
    wide = shown([event(status="dead")], notes, width=120)[1]

    assert heading.split() == ["ID", "RECEIVED", "SOURCE", "TYPE", "WHY"]
    assert line.startswith(" 7  3m ago    stripe  invoice.paid  shop.credit: KeyError: 'x' yyy")
    assert (len(line), len(wide), wide.endswith(f"…  {STRIPE}")) == (80, 120, True)


@pytest.mark.parametrize(
    ("due_at", "parked", "said"),
    [
        (NOW.replace(year=2200), None, "due in "),
        (NOW, None, "due, for a worker"),
        (NOW, "limit:credit", "its handler's limit is full"),
        (NOW, "handler", "its handler is paused"),
    ],
)
def test_list_of_what_waits_says_for_what(monkeypatch, capsys, due_at, parked, said):
    waiting = event(status="waiting").model_copy(update={"due_at": due_at, "parked": parked})
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    print_events([waiting], {"status": "waiting"}, None)

    assert (
        COLOR.sub("", capsys.readouterr().out)
        .splitlines()[1]
        .partition("invoice.paid")[2]
        .strip()
        .startswith(said)
    )


def on_a_terminal(place, *words, **environ):
    """What a command prints on a terminal of 80 columns, colours included."""
    ours, its = pty.openpty()
    code = "import sys; sys.argv[0] = 'hookonce'; from hookonce.receiver.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=place,
        env={**os.environ, "COLUMNS": "80", "TERM": "xterm", **environ},
        stdout=its,
        stderr=its,
    )
    os.close(its)
    said = b""
    try:
        while chunk := os.read(ours, 65536):
            said += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(30) == 0, said
    return said.decode()


@pytest.mark.usefixtures("rings")
@pytest.mark.parametrize(("environ", "is_colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_listing_on_a_terminal_is_colored_unless_nobody_wants_that(inbox, stored, environ, is_colored):
    stored(STRIPE, status="dead", runs=[("shop.credit", "dead", 1)])

    said = on_a_terminal(inbox, "events", "list", "--status", "dead", **environ)

    assert ("\x1b[31m\x1b[1m 1\x1b" in said) is is_colored
    assert ("\x1b" in said) is is_colored
    assert "  shop.credit  " in said


@pytest.mark.usefixtures("inbox")
def test_dead_events_are_listed_with_their_cause_and_grouped_by_it(hookonce, stored, ledger):
    for number, error in enumerate(["no customer cus_1a2b3c4d", "no customer cus_9z8y7x6w", "a timeout"]):
        event_id = stored(f"evt_{number}", status="dead", runs=[("shop.credit", "dead", 1)])
        ledger.execute(f"{FAILED} VALUES (%s, 'shop.credit', 1, 1, %s)", [event_id, error])

    listed = hookonce("events", "list", "--status", "dead", "--json").documents
    table, groups = (
        hookonce("events", "list", "--status", "dead", *more).lines for more in ((), ("--group",))
    )
    refused = hookonce("events", "list", "--group")

    assert listed[0]["dead"] == [{"handler": "shop.credit", "error": "a timeout"}]
    assert re.match(r"3 +dead +invoice.paid +shop.credit  a timeout ", table[1])
    assert [line.strip() for line in groups if "*" in line] == ["no customer *", "a timeout*"]
    assert (refused.code, refused.err.count("\n")) == (2, 1)


@pytest.mark.usefixtures("inbox")
def test_event_is_shown_with_the_error_first_and_the_body_on_demand(hookonce, stored, ledger):
    number = stored("evt_1", status="dead", body=b'{"n": 1}', runs=[("shop.credit", "dead", 2)])
    ledger.execute(
        f"{FAILED} VALUES (%s, 'shop.credit', 1, 2, 'boom')",
        [number],
    )

    lines = hookonce("events", "show", number, "--body").lines

    order = [
        next(i for i, line in enumerate(lines) if text in line)
        for text in ("boom", '"n": 1', "shop.credit  dead")
    ]
    assert order == sorted(order)
    assert lines[0] == f"event        {number}  dead"
    assert "body         8 bytes, 1 headers; --body shows them" in hookonce("events", "show", number).lines


@pytest.mark.usefixtures("inbox")
def test_error_is_whole_where_it_is_not_shown_on_a_terminal(hookonce, stored, ledger):
    error = f"ValueError: {'no such customer ' * 12}cus_77 (shop/handlers.py:12)"
    number = stored("evt_1", status="dead", runs=[("shop.credit", "dead", 2)])
    ledger.execute(f"{FAILED} VALUES (%s, 'shop.credit', 1, 2, %s)", [number, error])

    lines = hookonce("events", "show", number).lines

    assert len([line for line in lines if line.endswith(error)]) == 2


def test_error_that_is_sealed_is_shown_with_its_text_from_the_traceback():
    said = "shop.errors.NoCustomer: no such customer\nask the shop"
    shown = Failure(
        handler="shop.credit",
        cycle=1,
        attempt=1,
        failed_at=NOW,
        error="NoCustomer (shop/handlers.py:12)",
        issue=None,
        started_at=None,
        traceback="",
        frames=Traceback((Raised(said),)),
        unreadable=None,
    )

    assert shown.with_content().said == said
    assert shown.model_copy(update={"frames": None}).said == "NoCustomer (shop/handlers.py:12)"
    assert shown.model_copy(update={"error": "the worker was lost"}).said == "the worker was lost"


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize(
    ("source", "body", "data"),
    [
        ("stripe", b'{"id": "evt_1", "type": "invoice.paid", "data": {"n": [1]}}', "n"),
        ("stripe", b"no JSON", None),
        ("removed", b'{"n": 1}', {"n": 1}),
    ],
)
def test_event_as_json_has_the_data_that_handlers_get(hookonce, stored, source, body, data):
    number = stored("evt_1", source=source, body=body)

    said = hookonce("events", "show", number, "--json").documents[0]["data"]

    assert said == (json.loads(body) if data == "n" else data)


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("events", "list"), "no event yet; `hookonce trigger"),
        (("events", "list", "--status", "dead"), "no event is dead"),
        (("events", "list", "--type", "x"), "no event matches"),
        (("events", "list", "--status", "dead", "--group"), "no event is dead"),
        (("rejected", "list"), "no rejected delivery matches"),
        (("events", "conflicts"), "no event came with two bodies"),
        (("handlers", "list"), "no worker has registered a handler"),
        (("rejected", "quarantine"), "nothing is in quarantine"),
        (("sources", "secrets", "list"), "no sender has handed out a secret"),
        (("tokens", "list"), "there is no token"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_listing_of_nothing_says_so_and_prints_nothing(hookonce, command, said):
    listed = hookonce(*command)

    assert (listed.code, listed.out) == (0, b"")
    assert said in listed.err


@pytest.mark.usefixtures("inbox")
def test_handlers_are_listed_with_what_they_are_held_to_and_whose_their_pause_is(hookonce, ledger):
    limits = '{"rate": "100/m", "concurrency": 3, "per": "account", "breaker": 5, "tx": "none"}'
    known = [(name, "stripe", "invoice.*", 3, timedelta(seconds=30), None) for name in ("credit", "mail")]
    register_handlers(ledger, known, {"credit": f'{{"limits": {limits}}}'})
    desk.fail_in_a_row(ledger, "credit", 5, limit=5)
    hookonce("pause", "mail")

    told = hookonce("handlers", "list", "--json").documents
    (_, credit, mail) = hookonce("handlers", "list").lines

    assert [(each["handler"], each["pattern"], each["paused_by"]) for each in told] == [
        ("credit", "invoice.*", "breaker"),
        ("mail", "invoice.*", "person"),
    ]
    assert "credit (stopped by its breaker)" in credit
    assert '100/m, 3 at once, per account, breaker at 5, tx="none"' in credit
    assert "mail (paused)" in mail
