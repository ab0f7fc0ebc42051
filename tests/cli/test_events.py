import base64
import json

import pytest

from hookonce.receiver.ledger.queries import event_details, events
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback
from tests.support import terminal
from tests.support.issues import ID, die_of

pytestmark = pytest.mark.usefixtures("inbox")


def test_events_lists_newest_first_with_the_promised_keys(hookonce, stored):
    stored("evt_1")
    stored("evt_2", status="dead")

    listed = hookonce("events", "list", "--json")

    assert listed.code == 0
    assert [event["event_id"] for event in listed.documents] == ["evt_2", "evt_1"]
    promised = {"id", "source", "provider", "event_id", "type", "status", "received_at", "deliveries"}
    assert promised <= listed.documents[0].keys()


def test_listing_needs_no_configuration_without_mistakes_to_find_nothing(hookonce, inbox):
    (inbox / "hookonce.toml").write_text("[sources.shop]\nprovider = 'nobody'\n")

    listed = hookonce("events", "list", "--source", "strip")

    assert (listed.code, listed.out) == (0, b"")
    assert listed.err.startswith("no event matches")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--type", "invoice.*"], {"a", "b"}),
        (["--provider", "stripe", "--status", "dead", "--error", "no such*"], {"b"}),
        (["--handler", "app.other"], set()),
        (["--since", "1h"], {"a", "b"}),
        (["--since", "30d", "--limit", "0"], {"a", "b", "c"}),
        (["--limit", "1"], {"c"}),
    ],
)
def test_events_lists_what_the_options_ask_for(hookonce, stored, ledger, options, expected):
    stored("a")
    dead = stored("b", type="invoice.voided", status="dead", runs=[("app.credit", "dead", 3)])
    ledger.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error) "
        "VALUES (%s, 'app.credit', 1, 3, 'no such customer')",
        [dead],
    )
    old = stored("c", source="github", type="push")
    ledger.execute("UPDATE hookonce.events SET received_at = 'yesterday' WHERE id = %s", [old])

    listed = hookonce("events", "list", "--json", *options)

    assert {event["event_id"] for event in listed.documents} == expected


def test_events_lists_all_pages_when_the_limit_is_zero(hookonce, stored, monkeypatch):
    monkeypatch.setattr(events, "PAGE_SIZE", 2)
    numbers = [stored(f"evt_{n}") for n in range(5)]

    listed = hookonce("events", "list", "--json", "--limit", "0")

    assert [event["id"] for event in listed.documents] == numbers[::-1]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(("limit", "is_told"), [("0", True), ("201", True), ("200", False)])
def test_search_in_bodies_says_when_it_gives_fewer_than_the_limit(hookonce, limit, is_told):
    searched = hookonce("events", "list", "--body", "no such", "--limit", limit)

    assert ("a search in bodies gives 200 events at most" in searched.err) == is_told


def test_events_shows_no_terminal_escape_that_a_sender_wrote(hookonce, stored):
    stored("evt_\x1b]0;title\x07\u202e", type="[red]a[/red]", body=b'{"a": "\\u001b[2J"}')

    listed = hookonce("events", "list")
    shown = hookonce("events", "show", "1")

    assert "\\x1b]0;title\\x07\\u202e" in listed.lines[1]
    assert "[red]a[/red]" in listed.lines[1]
    assert b"\x1b" not in listed.out + shown.out


@pytest.mark.parametrize("shown", [["--json"], ["--body"], []])
def test_event_is_read_once_however_it_is_shown(hookonce, stored, monkeypatch, shown):
    stored("evt_1")
    stored("evt_1", body=b"other")
    read, times = event_details.detail, []
    monkeypatch.setattr(
        event_details, "detail", lambda *which, **how: times.append(which) or read(*which, **how)
    )

    assert hookonce("events", "show", "stripe:evt_1", *shown).code == 0

    assert len(times) == 1


def test_error_shows_no_terminal_escape_that_a_sender_wrote(hookonce, stored):
    stored("evt_1\x1b]0;title\x07")
    stored("evt_2")

    shown = hookonce("events", "show", "evt_")

    assert "stripe:evt_1\\x1b]0;title\\x07" in shown.err
    assert "\x1b]" not in shown.err


def test_event_shows_each_traceback_once_and_safely(hookonce, stored, ledger):
    number = stored("evt_1", status="dead", runs=[("app.credit", "dead", 3)])
    raised = Traceback((Raised("LookupError: no customer\n  boom\x1b[2J"),)).as_json
    for attempt, kept in enumerate((raised, raised, None), 1):
        ledger.execute(
            "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback) "
            "VALUES (%s, 'app.credit', 1, %s, 'boom', %s)",
            [number, attempt, kept],
        )

    shown = hookonce("events", "show", "1")
    failures = hookonce("events", "show", "1", "--json").documents[0]["failures"]

    begin = shown.lines.index("attempt 2 of app.credit:")
    assert shown.lines[begin + 1 :] == ["LookupError: no customer", "  boom\\x1b[2J"]
    assert "attempt 1 of app.credit:" not in shown.lines
    assert [failure["traceback"] for failure in failures] == [
        "LookupError: no customer\n  boom\x1b[2J\n"
    ] * 2 + [None]


def test_event_that_succeeded_after_a_replay_ends_with_no_traceback(hookonce, stored, ledger):
    number = stored("evt_1", status="done", runs=[("app.credit", "done", 1), ("app.mail", "dead", 1)])
    for handler in ("app.credit", "app.mail"):
        kept = Traceback((Raised(f"LookupError: of {handler}"),)).as_json
        ledger.execute(
            "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback) "
            "VALUES (%s, %s, 1, 1, 'boom', %s)",
            [number, handler, kept],
        )

    lines = hookonce("events", "show", "1").lines

    assert "LookupError: of app.mail" in lines
    assert "LookupError: of app.credit" not in lines
    assert any("attempt 1 of app.credit" in line for line in lines)


def test_event_shows_what_is_parked(hookonce, stored, ledger):
    number = stored("evt_1", status="waiting", runs=[("app.credit", "waiting", 0)])
    ledger.execute("UPDATE hookonce.queue SET waits = 'handler'")

    assert b"its handler is paused" in hookonce("events", "show", number).out
    shown = hookonce("events", "show", number, "--json").documents[0]
    assert (shown["parked"], shown["runs"][0]["parked"]) == ("handler", "handler")


def test_event_shows_a_body_that_is_no_text_as_base64_and_raw_as_it_came(hookonce, stored):
    body = b"\xff\x00\r\n"
    number = stored("evt_1", body=body)

    assert hookonce("events", "show", number, "--raw").out == body
    assert base64.b64decode(hookonce("events", "show", number, "--json").documents[0]["body_b64"]) == body
    assert (
        "4 bytes that are not text; --raw writes them" in hookonce("events", "show", number, "--body").lines
    )


def test_event_that_could_not_be_read_says_why_in_full(hookonce, stored):
    why = "bad_body: the body holds a number that JSON or Python does not have; its id reads evt_7"
    number = stored("evt_1", type="unreadable", unreadable=why)

    shown = hookonce("events", "show", number).out.decode()

    assert why in " ".join(shown.split())
    assert "failed attempts" not in shown


FRAME = {"file": "shop/handlers.py", "line": 12, "function": "credit", "code": ["pay()"], "is_users": True}
SAID = "ValueError: no such customer " + "x" * 5000


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize("attempts", [1, 7, 60])
def test_first_twelve_lines_have_the_error_and_its_code_however_often_it_failed(hookonce, ledger, attempts):
    (number,) = die_of(ledger, "evt_1")
    chain = [{"said": "KeyError: 'cus_1'", "frames": []}, {"said": SAID, "frames": [FRAME], "link": "cause"}]
    kept = json.dumps({"errors": chain}).encode()
    ledger.execute("DELETE FROM hookonce.failures")
    for attempt in range(1, attempts + 1):
        ledger.execute(
            "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback, issue) "
            "VALUES (%s, 'shop.credit', 1, %s, %s, %s, %s)",
            [number, attempt, SAID, kept, ID],
        )

    lines = hookonce("events", "show", str(number)).lines

    for command in (("events", "show", number), ("issues", "show", ID)):
        rows, _ = terminal.screen(*command)
        head = "\n".join(rows[:12])
        assert "ValueError: no such customer" in head
        assert "shop/handlers.py:12 in credit" in head
        assert "pay()" in head
    listed = [line.split()[1] for line in lines if line.startswith("  attempt ")]
    assert listed == [str(n) for n in range(1, attempts + 1)][-3:]
    assert (f"  {attempts - 3} earlier attempts, 1 error; --json lists them" in lines) is (attempts > 3)
