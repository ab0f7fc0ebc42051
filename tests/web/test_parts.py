"""The address of the door has what senders and clients ask for, the desk's what operators do; Flask knows both."""

import pytest
from werkzeug.test import Client

from hookonce.receiver.app import ROUTES
from hookonce.receiver.web.mounted import DESK_VARIABLE
from tests.support.in_process import Receiver

DESK = "127.0.0.1:8001"
ODD = (
    "/admin/../hooks/stripe",
    "/api/./v1/events",
    "/x/..",
    "/admin/..%2fhooks/stripe",
    "/api/v1/%2e%2e/%2E/events",
    "/.%2e/metrics",
    "/..",
)


@pytest.fixture
def receiver(database_url, redis_url):
    with_admin = Receiver(database_url, redis_url)
    yield with_admin
    with_admin.close()


def status(receiver, path, port, method="GET"):
    return Client(receiver.app).open(path, method=method, base_url=f"http://localhost:{port}").status_code


@pytest.mark.parametrize("path", ["/api/v1/events", "/admin", "/admin/", "/metrics", "/nothing"])
def test_door_has_nothing_of_the_desk(receiver, monkeypatch, path):
    monkeypatch.setenv(DESK_VARIABLE, DESK)

    assert status(receiver, path, 8000) == 404


def test_desk_has_its_pages_and_no_deliveries(receiver, monkeypatch):
    monkeypatch.setenv(DESK_VARIABLE, DESK)

    assert status(receiver, "/metrics", 8001) == 200
    assert status(receiver, "/api/v1/events", 8001) == 401
    assert status(receiver, "/hooks/stripe", 8001, "POST") == 404


def test_both_are_at_one_address_where_the_desk_is_at_the_door(receiver, monkeypatch):
    monkeypatch.setenv(DESK_VARIABLE, "door")

    assert status(receiver, "/metrics", 8000) == 200
    assert status(receiver, "/hooks/nobody", 8000, "POST") == 404


@pytest.mark.parametrize("desk", ["door", DESK, "off"])
def test_probes_of_the_door_say_a_status_alone(receiver, monkeypatch, desk):
    monkeypatch.setenv(DESK_VARIABLE, desk)
    client = Client(receiver.app)

    for path in ("/livez", "/readyz"):
        answer = client.get(path, base_url="http://localhost:8000")
        is_whole = path == "/readyz" and desk == "door"
        assert (answer.status_code, answer.json["status"], len(answer.json) > 1) == (200, "ok", is_whole)


@pytest.mark.parametrize("port", [8000, 8001])
@pytest.mark.parametrize("path", ODD)
def test_path_with_dots_leads_nowhere(receiver, monkeypatch, path, port):
    for desk in (DESK, "door"):
        monkeypatch.setenv(DESK_VARIABLE, desk)
        assert status(receiver, path, port) == 404


def test_flask_lists_the_routes_that_the_door_answers(receiver):
    rules = {str(rule) for rule in receiver.app.url_map.iter_rules()}

    assert rules >= set(ROUTES)
