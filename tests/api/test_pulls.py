import base64
import threading
from dataclasses import replace

import psycopg
import pytest

from hookonce.providers.kit.reading.json_paths import parse
from hookonce.receiver.app import create_app
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.queries import feed
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

CARD = "4242424242424242"


def begin(inbox, scope="both", **wanted):
    if "both" not in inbox.tokens:
        scopes = [api_tokens.Scope.READ, api_tokens.Scope.BODIES]
        inbox.tokens["both"] = api_tokens.create(inbox.connection, "both", scopes, None, "a test")
    answer = inbox.ask("POST", "/pulls", wanted, scope=scope)
    assert answer.status_code == 201, answer.json
    return answer.json


def page(inbox, pull, cursor, scope="both"):
    answer = inbox.ask("GET", f"/pulls/{pull['id']}/events", scope=scope, query_string={"cursor": cursor})
    assert answer.status_code == 200, answer.json
    return answer.json


def pulled(inbox, pull, scope="both", pages=6):
    """Everything that a few pages give, and the last cursor."""
    found, cursor = [], pull["cursor"]
    for _ in range(pages):
        got = page(inbox, pull, cursor, scope)
        found += got["data"]
        cursor = got["next"]
    return found, cursor


def test_events_come_in_order_once_with_bodies_byte_for_byte(inbox):
    bodies = {f"evt_{n}": b'{"n":  %d}\xff' % n for n in range(30)}
    for name, body in bodies.items():
        inbox.deliver(name, body=body)
    pull = begin(inbox, since="1h")

    found, cursor = pulled(inbox, pull)
    inbox.deliver("evt_later")
    after, _ = pulled(inbox, pull | {"cursor": cursor})

    assert {each["event_id"]: base64.b64decode(each["body_b64"]) for each in found} == bodies
    assert [each["id"] for each in found] == sorted(each["id"] for each in found)
    assert [each["event_id"] for each in after] == ["evt_later"]


def test_pages_are_bounded_by_events_and_by_bytes(inbox, monkeypatch):
    monkeypatch.setattr(feed, "FEED_PAGE", 4)
    monkeypatch.setattr(feed, "FEED_BYTES", 250)
    for n in range(9):
        inbox.deliver(f"evt_{n}", body=b"x" * (100 if n < 6 else 1000))
    pull, sizes, cursor = begin(inbox, since="1h"), [], None

    for _ in range(12):
        got = page(inbox, pull, cursor or pull["cursor"])
        cursor = got["next"]
        sizes.append(len(got["data"]))

    assert [size for size in sizes if size] == [2, 2, 2, 1, 1, 1]


def test_pull_is_narrowed_by_source_and_type(inbox):
    inbox.deliver("evt_1", type="invoice.paid")
    inbox.deliver("evt_2", type="charge.failed")
    inbox.deliver("evt_3", source="github", type="invoice.paid")

    found, _ = pulled(inbox, begin(inbox, since="1h", source="stripe", type="invoice.*"))

    assert [each["event_id"] for each in found] == ["evt_1"]


def test_commands_and_alerts_never_leave(inbox):
    inbox.deliver("evt_1", provider="command")
    inbox.deliver("evt_2", provider="hookonce", source="hookonce")
    (number,) = inbox.deliver("evt_3", provider="command", source="ship")
    pull = begin(inbox, since="1h")

    assert pulled(inbox, pull)[0] == []
    assert inbox.ask("GET", f"/pulls/{pull['id']}/events/{number}", scope="both").status_code == 404


def test_event_that_commits_after_a_later_one_is_not_passed_over(inbox, database_url):
    """The earlier id is in hand before its transaction has an id of its own, which waits for a twin."""
    with psycopg.connect(database_url) as slow, psycopg.connect(database_url) as twin:
        store(twin, [new_event("evt_twin")])  # holds the key; nothing is committed
        blocked = threading.Thread(target=lambda: (store(slow, [new_event("evt_twin")]), slow.commit()))
        pull = begin(inbox, since="1h")
        blocked.start()
        while not inbox.rows(
            "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ):
            pass
        inbox.deliver("evt_after")

        early, cursor = pulled(inbox, pull)
        twin.rollback()
        blocked.join()
        late, _ = pulled(inbox, pull | {"cursor": cursor})

    assert early == []
    assert [each["event_id"] for each in late] == ["evt_twin", "evt_after"]
    assert [each["id"] for each in late] == sorted(each["id"] for each in late)


def test_pull_needs_read_and_bodies_need_a_scope_of_their_own(inbox):
    inbox.deliver("evt_1", body=b'{"name": "Ada"}', headers='{"x-name": "Ada"}', url="/hooks/stripe?name=Ada")

    assert inbox.ask("POST", "/pulls", {}, scope="bodies").status_code == 403
    pull = begin(inbox, "read", since="1h")
    (event,), _ = pulled(inbox, pull, "read")
    (whole,), _ = pulled(inbox, begin(inbox, since="1h"))

    assert not pull["has_bodies"]
    assert (event["missing"], event["body_b64"], event["headers"], event["url"], event["fingerprint"]) == (
        "scope",
        None,
        None,
        None,
        None,
    )
    assert base64.b64decode(whole["body_b64"]) == b'{"name": "Ada"}'


def test_one_event_is_given_again_if_the_note_of_the_pull_has_it(inbox):
    (paid,) = inbox.deliver("evt_1", type="invoice.paid")
    (pushed,) = inbox.deliver("evt_2", source="github", type="push")
    pull = begin(inbox, source="stripe")

    answers = [
        inbox.ask("GET", f"/pulls/{pull['id']}/events/{each}", scope="both") for each in (paid, pushed)
    ]

    assert [answer.status_code for answer in answers] == [200, 404]
    assert answers[0].json["event_id"] == "evt_1"


def test_pull_is_noted_once_and_is_its_tokens_own(inbox):
    inbox.deliver(*(f"evt_{n}" for n in range(5)))
    pull = begin(inbox, since="1h", type="invoice.*")

    pulled(inbox, pull)

    ((who, detail),) = inbox.rows("SELECT who, detail FROM hookonce.audit WHERE action = 'pull'")
    assert who == "both (token)"
    assert (detail["filter"]["type"], detail["bodies"], detail["after"]) == ("invoice.*", True, 0)
    stranger = inbox.ask(
        "GET", f"/pulls/{pull['id']}/events", scope="admin", query_string={"cursor": pull["cursor"]}
    )
    assert (stranger.status_code, stranger.json["code"]) == (404, "pull_over")
    inbox.rows("UPDATE hookonce.audit SET at = now() - interval '25 hours' RETURNING id")
    over = inbox.ask(
        "GET", f"/pulls/{pull['id']}/events", scope="both", query_string={"cursor": pull["cursor"]}
    )
    assert over.json["code"] == "pull_over"


def test_redacted_value_and_its_digest_never_leave(inbox):
    """Rules of now hold for what was stored before them."""
    body = b'{"card": "%s",  "id": "evt_1"}' % CARD.encode()
    inbox.deliver("evt_1", body=body)
    inbox.deliver("evt_2", body=body, is_element=True)
    stripe = inbox.settings.sources["stripe"]
    rules = {"stripe": replace(stripe, redact=(tuple(parse("$.card")),), secrets=("whsec_of_the_tests",))}
    inbox.app = create_app(replace(inbox.settings, sources=rules))
    try:
        answers = [
            inbox.ask(
                "GET", f"/pulls/{pull['id']}/events", scope="both", query_string={"cursor": pull["cursor"]}
            )
            for pull in [begin(inbox, since="1h")] * 2
        ]
        found, _ = pulled(inbox, begin(inbox, since="1h"))
    finally:
        inbox.app.extensions["hookonce"].close()

    assert [each["is_redacted"] for each in found] == [True, True]
    assert all(CARD not in base64.b64decode(each["body_b64"]).decode() for each in found)
    assert all(CARD not in each.text for each in answers)
    before = {bytes(row[0]).hex() for row in inbox.rows("SELECT fingerprint FROM hookonce.events")}
    assert not before & {each["fingerprint"] for each in found}


def test_credentials_in_headers_are_masked_once_more(inbox):
    inbox.deliver(
        "evt_1", headers='{"authorization": "Basic QWRh", "x": "whsec_older", "hookonce-origin": "forged"}'
    )

    (event,), _ = pulled(inbox, begin(inbox, since="1h"))

    assert event["headers"] == {"authorization": "[secret]", "x": "[secret]", "hookonce-origin": "[secret]"}


def test_dropped_body_is_said_to_be_so(inbox):
    inbox.deliver("evt_1")
    inbox.rows("DELETE FROM hookonce.bodies RETURNING event")

    (event,), _ = pulled(inbox, begin(inbox, since="1h"))

    assert (event["missing"], event["body_b64"]) == ("retention", None)


def test_pull_says_from_when_on_there_are_events(inbox):
    inbox.deliver("evt_1")
    (at,) = inbox.rows("SELECT received_at FROM hookonce.events")[0]

    assert begin(inbox, since="2h")["oldest_at"] == at.isoformat()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: "0" * 32 + c[32:], "another ledger"),
        (lambda c: c[:32] + ".9999.9999.9999.9999999999.", "set back"),
    ],
)
def test_cursor_of_another_ledger_is_refused(inbox, change, said):
    inbox.deliver("evt_1")
    pull = begin(inbox)

    refused = inbox.ask("POST", "/pulls", {"cursor": change(pull["cursor"])}, scope="both")

    assert (refused.status_code, refused.json["code"]) == (409, "other_ledger")
    assert said in refused.json["detail"]


def test_cursor_of_a_ledger_that_was_set_back_and_has_grown_since_is_refused(inbox):
    """Other events have come under the ids that were given, so that some would be passed over."""
    inbox.deliver("evt_1", "evt_2")
    pull = begin(inbox, since="1h")
    _, cursor = pulled(inbox, pull)
    inbox.rows("DELETE FROM hookonce.queue RETURNING event")
    inbox.rows("DELETE FROM hookonce.bodies RETURNING event")
    inbox.rows("DELETE FROM hookonce.events WHERE event_id = 'evt_2' RETURNING id")
    inbox.rows("SELECT setval(pg_get_serial_sequence('hookonce.events', 'id'), max(id)) FROM hookonce.events")
    inbox.deliver("evt_3", "evt_4")
    inbox.rows("UPDATE hookonce.events SET received_at = received_at + interval '5 s' RETURNING id")

    begun = inbox.ask("POST", "/pulls", {"cursor": cursor}, scope="both")
    given = inbox.ask("GET", f"/pulls/{pull['id']}/events", scope="both", query_string={"cursor": cursor})

    assert [answer.json["code"] for answer in (begun, given)] == ["other_ledger"] * 2
    assert "other events before the cursor" in begun.json["detail"]


@pytest.mark.parametrize("cursor", ["", "a", "0" * 32 + ".1.1.1.1.;DROP", "0" * 32 + ".-1.1.1.1."])
def test_cursor_that_is_none_is_a_mistake(inbox, cursor):
    assert (
        inbox.ask(
            "POST", "/pulls", {"cursor": cursor}, scope="both" if "both" in inbox.tokens else "admin"
        ).status_code
        == 422
    )


def test_page_costs_at_most_two_statements_a_second(inbox):
    inbox.deliver("evt_1")
    pull = begin(inbox, since="1h")

    first = page(inbox, pull, pull["cursor"])
    idle = page(inbox, pull, first["next"])

    assert first["wait"] >= 1.5
    assert idle["wait"] >= 1.5
