import base64
import threading
from dataclasses import replace

import psycopg
import pytest

from hookonce.providers.kit.reading.json_paths import parse
from hookonce.receiver.ledger.queries import feed
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

CARD = "4242424242424242"


def begin(here, scope="read+bodies", **wanted):
    answer = here.ask("begin_pull", **wanted, scope=scope)
    assert answer.kind == "done", answer.json
    return answer.json


def page(here, pull, cursor, scope="read+bodies"):
    answer = here.ask("pull_events", pull=pull["id"], scope=scope, cursor=cursor)
    assert answer.kind == "done", answer.json
    return answer.json


def pulled(here, pull, scope="read+bodies", pages=6):
    """Everything that a few pages give, and the last cursor."""
    found, cursor = [], pull["cursor"]
    for _ in range(pages):
        got = page(here, pull, cursor, scope)
        found += got["data"]
        cursor = got["next"]
    return found, cursor


def test_events_come_in_order_once_with_bodies_byte_for_byte(here):
    bodies = {f"evt_{n}": b'{"n":  %d}\xff' % n for n in range(30)}
    for name, body in bodies.items():
        here.deliver(name, body=body)
    pull = begin(here, since="1h")

    found, cursor = pulled(here, pull)
    here.deliver("evt_later")
    after, _ = pulled(here, pull | {"cursor": cursor})

    assert {each["event_id"]: base64.b64decode(each["body_b64"]) for each in found} == bodies
    assert [each["id"] for each in found] == sorted(each["id"] for each in found)
    assert [each["event_id"] for each in after] == ["evt_later"]


def test_pages_are_bounded_by_events_and_by_bytes(here, monkeypatch):
    monkeypatch.setattr(feed, "FEED_PAGE", 4)
    monkeypatch.setattr(feed, "FEED_BYTES", 250)
    for n in range(9):
        here.deliver(f"evt_{n}", body=b"x" * (100 if n < 6 else 1000))
    pull, sizes, cursor = begin(here, since="1h"), [], None

    for _ in range(12):
        got = page(here, pull, cursor or pull["cursor"])
        cursor = got["next"]
        sizes.append(len(got["data"]))

    assert [size for size in sizes if size] == [2, 2, 2, 1, 1, 1]


def test_pull_is_narrowed_by_source_and_type(here):
    here.deliver("evt_1", type="invoice.paid")
    here.deliver("evt_2", type="charge.failed")
    here.deliver("evt_3", source="github", type="invoice.paid")

    found, _ = pulled(here, begin(here, since="1h", source="stripe", type="invoice.*"))

    assert [each["event_id"] for each in found] == ["evt_1"]


def test_commands_and_alerts_never_leave(here):
    here.deliver("evt_1", provider="command")
    here.deliver("evt_2", provider="hookonce", source="hookonce")
    (number,) = here.deliver("evt_3", provider="command", source="ship")
    pull = begin(here, since="1h")

    assert pulled(here, pull)[0] == []
    assert here.ask("pull_event", pull=pull["id"], event=number, scope="read+bodies").kind == "NotFound"


def test_event_that_commits_after_a_later_one_is_not_passed_over(here, database_url):
    """The earlier id is in hand before its transaction has an id of its own, which waits for a twin."""
    with psycopg.connect(database_url) as slow, psycopg.connect(database_url) as twin:
        store(twin, [new_event("evt_twin")])  # holds the key; nothing is committed
        blocked = threading.Thread(target=lambda: (store(slow, [new_event("evt_twin")]), slow.commit()))
        pull = begin(here, since="1h")
        blocked.start()
        while not here.rows(
            "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ):
            pass
        here.deliver("evt_after")

        early, cursor = pulled(here, pull)
        twin.rollback()
        blocked.join()
        late, _ = pulled(here, pull | {"cursor": cursor})

    assert early == []
    assert [each["event_id"] for each in late] == ["evt_twin", "evt_after"]
    assert [each["id"] for each in late] == sorted(each["id"] for each in late)


def test_pull_needs_read_and_bodies_need_a_scope_of_their_own(here):
    here.deliver("evt_1", body=b'{"name": "Ada"}', headers='{"x-name": "Ada"}', url="/hooks/stripe?name=Ada")

    assert here.ask("begin_pull", scope="bodies").kind == "Forbidden"
    pull = begin(here, "read", since="1h")
    (event,), _ = pulled(here, pull, "read")
    (whole,), _ = pulled(here, begin(here, since="1h"))

    assert not pull["has_bodies"]
    assert (event["missing"], event["body_b64"], event["headers"], event["url"], event["fingerprint"]) == (
        "scope",
        None,
        None,
        None,
        None,
    )
    assert base64.b64decode(whole["body_b64"]) == b'{"name": "Ada"}'


def test_one_event_is_given_again_if_the_note_of_the_pull_has_it(here):
    (paid,) = here.deliver("evt_1", type="invoice.paid")
    (pushed,) = here.deliver("evt_2", source="github", type="push")
    pull = begin(here, source="stripe")

    answers = [
        here.ask("pull_event", pull=pull["id"], event=each, scope="read+bodies") for each in (paid, pushed)
    ]

    assert [answer.kind for answer in answers] == ["done", "NotFound"]
    assert answers[0].json["event_id"] == "evt_1"


def test_pull_is_noted_once_and_is_its_tokens_own(here):
    here.deliver(*(f"evt_{n}" for n in range(5)))
    pull = begin(here, since="1h", type="invoice.*")

    pulled(here, pull)

    ((who, detail),) = here.rows("SELECT who, detail FROM hookonce.audit WHERE action = 'pull'")
    assert who == "read+bodies (token)"
    assert (detail["filter"]["type"], detail["bodies"], detail["after"]) == ("invoice.*", True, 0)
    stranger = here.ask("pull_events", pull=pull["id"], scope="admin", cursor=pull["cursor"])
    assert (stranger.kind, stranger.json["code"]) == ("NotFound", "pull_over")
    here.rows("UPDATE hookonce.audit SET at = now() - interval '25 hours' RETURNING id")
    over = here.ask("pull_events", pull=pull["id"], scope="read+bodies", cursor=pull["cursor"])
    assert over.json["code"] == "pull_over"


def test_redacted_value_and_its_digest_never_leave(here):
    """Rules of now hold for what was stored before them."""
    body = b'{"card": "%s",  "id": "evt_1"}' % CARD.encode()
    here.deliver("evt_1", body=body)
    here.deliver("evt_2", body=body, is_element=True)
    stripe = here.settings.sources["stripe"]
    rules = {"stripe": replace(stripe, redact=(tuple(parse("$.card")),), secrets=("whsec_of_the_tests",))}
    here.settings = replace(here.settings, sources=rules)

    found, _ = pulled(here, begin(here, since="1h"))

    assert [each["is_redacted"] for each in found] == [True, True]
    assert all(CARD not in base64.b64decode(each["body_b64"]).decode() for each in found)
    assert CARD not in str(found)
    before = {bytes(row[0]).hex() for row in here.rows("SELECT fingerprint FROM hookonce.events")}
    assert not before & {each["fingerprint"] for each in found}


def test_credentials_in_headers_are_masked_once_more(here):
    here.deliver(
        "evt_1", headers='{"authorization": "Basic QWRh", "x": "whsec_older", "hookonce-origin": "forged"}'
    )

    (event,), _ = pulled(here, begin(here, since="1h"))

    assert event["headers"] == {"authorization": "[secret]", "x": "[secret]", "hookonce-origin": "[secret]"}


def test_dropped_body_is_said_to_be_so(here):
    here.deliver("evt_1")
    here.rows("DELETE FROM hookonce.bodies RETURNING event")

    (event,), _ = pulled(here, begin(here, since="1h"))

    assert (event["missing"], event["body_b64"]) == ("retention", None)


def test_pull_says_from_when_on_there_are_events(here):
    here.deliver("evt_1")
    (at,) = here.rows("SELECT received_at FROM hookonce.events")[0]

    assert begin(here, since="2h")["oldest_at"] == at.isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: "0" * 32 + c[32:], "another ledger"),
        (lambda c: c[:32] + ".9999.9999.9999.9999999999.", "set back"),
    ],
)
def test_cursor_of_another_ledger_is_refused(here, change, said):
    here.deliver("evt_1")
    pull = begin(here)

    refused = here.ask("begin_pull", cursor=change(pull["cursor"]), scope="read+bodies")

    assert (refused.kind, refused.json["code"]) == ("Conflict", "other_ledger")
    assert said in refused.json["detail"]


def test_cursor_of_a_ledger_that_was_set_back_and_has_grown_since_is_refused(here):
    """Other events have come under the ids that were given, so that some would be passed over."""
    here.deliver("evt_1", "evt_2")
    pull = begin(here, since="1h")
    _, cursor = pulled(here, pull)
    here.rows("DELETE FROM hookonce.queue RETURNING event")
    here.rows("DELETE FROM hookonce.bodies RETURNING event")
    here.rows("DELETE FROM hookonce.events WHERE event_id = 'evt_2' RETURNING id")
    here.rows("SELECT setval(pg_get_serial_sequence('hookonce.events', 'id'), max(id)) FROM hookonce.events")
    here.deliver("evt_3", "evt_4")
    here.rows("UPDATE hookonce.events SET received_at = received_at + interval '5 s' RETURNING id")

    begun = here.ask("begin_pull", cursor=cursor, scope="read+bodies")
    given = here.ask("pull_events", pull=pull["id"], scope="read+bodies", cursor=cursor)

    assert [answer.json["code"] for answer in (begun, given)] == ["other_ledger"] * 2
    assert "other events before the cursor" in begun.json["detail"]


@pytest.mark.parametrize("cursor", ["", "a", "0" * 32 + ".1.1.1.1.;DROP", "0" * 32 + ".-1.1.1.1."])
def test_cursor_that_is_none_is_a_mistake(here, cursor):
    assert here.ask("begin_pull", cursor=cursor, scope="read+bodies").kind == "Invalid"


def test_page_costs_at_most_two_statements_a_second(here):
    here.deliver("evt_1")
    pull = begin(here, since="1h")

    first = page(here, pull, pull["cursor"])
    idle = page(here, pull, first["next"])

    assert first["wait"] >= 1.5
    assert idle["wait"] >= 1.5
