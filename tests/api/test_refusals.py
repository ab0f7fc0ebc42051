import dataclasses
import json
from datetime import timedelta

import pytest

from hookonce.receiver.api import server
from hookonce.receiver.app import create_app
from hookonce.receiver.ledger.access import api_tokens

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/events/", 404, "not_found"),
        ("GET", "/events/99", 404, "not_found"),
        ("GET", "/events/abc", 404, "not_found"),
        ("GET", "/events/stripe:%00", 404, "not_found"),
        ("GET", "/events/9223372036854775808", 404, "not_found"),
        ("PATCH", "/events", 405, "bad_method"),
        ("OPTIONS", "/replays", 405, "bad_method"),
        ("GET", "/events?limt=1", 422, "invalid"),
        ("GET", "/events?limit=1&limit=2", 422, "invalid"),
        ("GET", "/events?limit=0", 422, "invalid"),
        ("GET", "/events?limit=1_0", 422, "invalid"),
        ("GET", "/events?cursor=5", 422, "invalid"),
        ("GET", "/events?since=tomorrow", 422, "invalid"),
        ("GET", "/events?since=2026-02-30", 422, "invalid"),
        ("GET", "/events?status=gone", 422, "invalid"),
        ("GET", "/events?type=%00", 422, "invalid"),
        ("GET", "/events?type=%ff", 400, "bad_body"),
        ("GET", "/stats?since=2h", 422, "invalid"),
    ],
)
def test_request_is_refused_as_problem_details(calm, method, path, status, code):
    answer = calm.ask(method, path)

    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert (answer.json["status"], answer.json["code"]) == (status, code)


@pytest.mark.parametrize("name", ["\0", "stripe:\0", "\ud800", "stripe:\ud800"])
def test_name_that_no_event_can_have_is_unknown(calm, name):
    answer = calm.ask("POST", "/replays", headers=JSON, data=json.dumps({"events": [name]}).encode())

    assert (answer.status_code, answer.json["code"]) == (404, "not_found")
    assert answer.json["detail"].startswith("not in the ledger: ")
    assert answer.json["detail"].encode()


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b'{"events": [1]}', {}, 415),
        (b'{"events": [1]}', {"Content-Type": "text/plain"}, 415),
        (b'{"events": [1]}', JSON | {"Content-Encoding": "gzip"}, 415),
        (b"", JSON, 400),
        (b"{", JSON, 400),
        (b"\xff", JSON, 400),
        (b'{"events": [NaN]}', JSON, 400),
        (b'{"events": [1]}' + b" " * 65536, JSON, 413),
        (b"[" * 30 + b"]" * 30, JSON, 400),
        (b'{"events": [1], "events": [2]}', JSON, 400),
        (b"[" * 60_000, JSON, 400),
        (b"[]", JSON, 422),
        (b"{}", JSON, 409),
        (b'{"events": []}', JSON, 409),
        (b'{"events": [true]}', JSON, 422),
        (b'{"events": [["1"]]}', JSON, 422),
        (b'{"events": [""]}', JSON, 422),
        (json.dumps({"events": ["e" * 256]}).encode(), JSON, 422),
        (b'{"events": [9223372036854775808]}', JSON, 422),
        (b'{"events": [1], "\\ud800": 1}', JSON, 422),
        (json.dumps({"events": [0] * 5000}).encode(), JSON, 422),
    ],
)
def test_body_is_refused_unless_it_is_what_is_expected(calm, body, headers, status):
    answer = calm.ask("POST", "/replays", headers=headers, data=body)

    assert (answer.status_code, answer.json["status"]) == (status, status)
    assert len(answer.data) < 5000


def test_refusal_points_at_every_mistake(calm):
    wanted = {"filter": {"status": "gone", "soruce": "stripe"}, "rate": 0}

    answer = calm.ask("POST", "/bulk-replays", wanted)

    pointers = [mistake["pointer"] for mistake in answer.json["errors"]]
    assert sorted(pointers) == ["#/filter/soruce", "#/filter/status", "#/rate"]


def test_refusal_names_the_parameter_of_the_query(calm):
    answer = calm.ask("GET", "/events?limit=many&stauts=dead")

    assert sorted(mistake["parameter"] for mistake in answer.json["errors"]) == ["limit", "stauts"]


def test_wrong_method_is_told_the_right_ones(calm):
    assert calm.ask("POST", "/events/1").headers["Allow"] == "GET, HEAD"
    assert calm.ask("OPTIONS", "/events/1/edited").headers["Allow"] == "POST"


def test_refusal_of_an_unread_body_ends_the_connection(calm):
    refused = calm.ask("POST", "/replays", {"events": [1]}, scope=None)
    understood = calm.ask("POST", "/replays", {"events": []})

    assert (refused.headers.get("Connection"), understood.headers.get("Connection")) == ("close", None)


def test_unknown_path_outside_of_the_api_is_the_receivers(calm):
    answer = calm.app.test_client().get("/apis")

    assert (answer.status_code, answer.json["code"]) == (404, "unknown_source")


def test_api_asks_to_come_back_while_postgresql_is_away(inbox):
    away = dataclasses.replace(inbox.settings, database_url="postgresql://127.0.0.1:1/none")
    inbox.app = create_app(away)

    answer = inbox.ask("GET", "/events")

    assert (answer.status_code, answer.json["code"]) == (503, "ledger_unavailable")
    assert int(answer.headers["Retry-After"]) > 0


def test_api_asks_for_the_upgrade_while_tables_are_missing(inbox):
    inbox.connection.execute("DROP TABLE hookonce.api_tokens")

    answer = inbox.ask("GET", "/events")

    assert (answer.status_code, answer.json["code"]) == (503, "schema_behind")
    assert "hookonce db upgrade" in answer.json["detail"]


def test_api_asks_to_come_back_while_all_its_turns_are_taken(inbox, monkeypatch):
    monkeypatch.setattr(server, "MAX_CONCURRENT_REQUESTS", 0)
    monkeypatch.setattr(server, "ADMISSION_TIMEOUT", timedelta(0))
    inbox.app = create_app(inbox.settings)

    answer = inbox.ask("GET", "/events")

    assert (answer.status_code, answer.json["code"]) == (503, "overloaded")


def test_token_that_proved_good_waits_behind_no_unknown_one(inbox, monkeypatch):
    monkeypatch.setattr(server, "ADMISSION_TIMEOUT", timedelta(0))
    monkeypatch.setattr(server, "MAX_UNPROVEN_REQUESTS", 1)
    inbox.app = create_app(inbox.settings)
    proven = [inbox.ask("GET", "/token", scope=scope).status_code for scope in ("admin", "replay")]
    inbox.connection.execute("DELETE FROM hookonce.api_tokens WHERE scopes = '{replay}'")
    revoked = inbox.ask("GET", "/token", scope="replay").status_code
    find, meanwhile = api_tokens.find, {}

    def lingering(connection, digest):
        if not meanwhile:
            meanwhile["unknown"] = None
            for scope in ("admin", "read", "replay"):
                meanwhile[scope] = inbox.ask("GET", "/token", scope=scope).status_code
        return find(connection, digest)

    monkeypatch.setattr(api_tokens, "find", lingering)
    inbox.ask("GET", "/token", scope=None, headers={"Authorization": "Bearer hko_" + "a" * 43})

    assert (proven, revoked) == ([200, 200], 401)
    assert meanwhile == {"unknown": None, "admin": 200, "read": 503, "replay": 503}


def test_malformed_token_costs_no_connection(inbox, monkeypatch):
    monkeypatch.setattr(server, "MAX_CONCURRENT_REQUESTS", 0)
    inbox.app = create_app(inbox.settings)

    answer = inbox.ask("GET", "/events", scope=None, headers={"Authorization": "Bearer hko_short"})

    assert answer.status_code == 401


def test_body_that_is_sealed_with_a_missing_key_is_told_to_be(inbox):
    (event,) = inbox.deliver("evt_1")
    inbox.connection.execute("UPDATE hookonce.bodies SET key_id = 'abcdef01'")

    shown, body = inbox.ask("GET", f"/events/{event}"), inbox.ask("GET", f"/events/{event}/body")

    assert (shown.status_code, shown.json["bytes"]) == (200, None)
    assert (body.status_code, body.json["code"]) == (503, "key_missing")
    assert "abcdef01" in shown.json["unreadable"]
