"""A page of somebody else's in a browser on this machine reaches neither the console nor a delivery's door."""

import contextlib
import http.client
from dataclasses import replace

import pytest

from hookonce.receiver.app import create_app
from hookonce.receiver.cli.capture.server import listening
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.intake.other_sites import is_of_other_site

PLACES = ["/admin/", "/admin/sign-in", "/api/v1/events", "/api/v1/openapi.json", "/metrics", "/nothing"]
ANY_HOST = ["/hooks/stripe", "/livez", "/readyz", "/commands/pay"]


@pytest.fixture(scope="module")
def client(fresh_database, fresh_redis, tmp_path_factory):
    place = tmp_path_factory.mktemp("inbox")
    (place / "hookonce.toml").write_text(
        '[receiver]\npublic_url = "https://hooks.example.com"\n'
        '[admin]\ntoken = "env:TOKEN"\nhosts = ["console.example.net"]\n'
        '[sources.stripe]\nsecrets = ["env:SECRET"]\n'
        '[commands.pay]\nhandler = "shop:pay"\nauth = { shop = ["env:TOKEN"] }\n'
    )
    with fresh_database() as database_url, fresh_redis() as redis_url:
        environ = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "HOOKONCE_CONFIG": str(place / "hookonce.toml"),
            "TOKEN": "token-of-the-tests-only",
            "SECRET": "whsec_secret_of_the_tests",
        }
        app = create_app(replace(load_settings(environ)))
        with contextlib.closing(app.extensions["hookonce"]):
            yield app.test_client(use_cookies=False)


def code(client, path, peer="127.0.0.1", method="GET", **headers):
    environ = {"REMOTE_ADDR": peer}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = client.open(path, method=method, headers=sent, environ_overrides=environ)
    return (answer.get_json(silent=True) or {}).get("code")


OWN = [
    "localhost",
    "localhost:8000",
    "127.0.0.1:8000",
    "127.3.2.1",
    "[::1]:8000",
    "app.localhost",
    "LOCALHOST",
]


@pytest.mark.parametrize("path", PLACES)
def test_name_of_somebody_else_is_refused_on_loopback(client, path):
    others = [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example:8000",
        "[",
        "",
    ]

    assert [code(client, path, Host=name) for name in others] == ["unknown_host"] * len(others)
    assert [code(client, path, "::1", Host="evil.example")] == ["unknown_host"]
    assert [code(client, path, "::ffff:127.0.0.1", Host="evil.example")] == ["unknown_host"]


@pytest.mark.parametrize("path", PLACES)
def test_name_of_ones_own_is_taken_on_loopback_and_any_elsewhere(client, path):
    names = [*OWN, "hooks.example.com", "console.example.net"]

    assert "unknown_host" not in [code(client, path, Host=name) for name in names]
    assert code(client, path, "203.0.113.7", Host="evil.example") != "unknown_host"


@pytest.mark.parametrize("path", ANY_HOST)
def test_tunnel_may_bring_deliveries_and_probes_under_its_name(client, path):
    assert code(client, path, Host="a1b2.tunnel.example") not in {"unknown_host", "other_site"}


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ANY_HOST)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Origin": "http://localhost"},
    ],
)
def test_page_of_another_site_is_refused_where_any_host_is_taken(client, path, method, headers):
    assert code(client, path, method=method, Host="localhost", **headers) == "other_site"


@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec_Fetch_Site": "none"}, {"Sec_Fetch_Site": "same-origin", "Origin": "http://localhost"}],
)
def test_what_no_other_site_sends_is_answered(client, headers):
    assert code(client, "/hooks/stripe", method="POST", Host="localhost", **headers) != "other_site"


@pytest.mark.parametrize(("headers", "status"), [({"Origin": "https://evil.example"}, 403), ({}, 200)])
def test_capture_takes_any_host_and_nothing_of_another_site(headers, status):
    with listening("127.0.0.1", 0) as (port, taken):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/", b"{}", {"Host": "a1b2.tunnel.example", **headers})

        assert connection.getresponse().status == status
        connection.close()
        if status == http.client.OK:  # it is answered first
            taken.get(timeout=20)
    assert taken.empty()


def test_browser_elsewhere_is_not_judged_by_its_origin():
    assert not is_of_other_site("203.0.113.7", {"origin": "https://a.example", "host": "b.example"})
