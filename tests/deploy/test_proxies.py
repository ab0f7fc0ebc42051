"""deploy/nginx.conf and deploy/Caddyfile before a running receiver; only names, ports and certificates are replaced."""

import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookonce.providers.kit.registry import load
from tests.support.page_commands import clean_environ, free_port
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
SECONDS = 30
PUBLIC = "https://hooks.example.com"
PARTNER = {"header": "x-signature", "signed": "{method}{url}{body}", "id": "$.id", "type": "$.type"}
CONFIGURATION = f"""
[receiver]
public_url = "{PUBLIC}"
[sources.stripe]
secrets = ["env:STRIPE_SECRET"]
[sources.partner]
provider = "hmac"
secrets = ["env:PARTNER_SECRET"]
hmac = {{ header = "x-signature", signed = "{{method}}{{url}}{{body}}", id = "$.id", type = "$.type" }}
"""
SECRETS = {"STRIPE_SECRET": "whsec_of_the_proxys_tests", "PARTNER_SECRET": "of the proxy's tests"}
PLACES = """
    client_body_temp_path {place}/body; proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/a; uwsgi_temp_path {place}/b; scgi_temp_path {place}/c;
"""
AT_THE_DESK = ("/metrics", "/admin", "/api/v1/events")
ROUND = (
    "/hooks/..{0}",
    "/hooks/%2e%2e{0}",
    "/hooks/.%2e{0}",
    "/hooks/x/../..{0}",
    "/hooks/..%2f{1}",
    "/hooks/%2e%2e%2f{1}",
    "/hooks//..{0}",
)


@pytest.fixture(scope="module")
def receiver_port(tmp_path_factory, fresh_database, fresh_redis):
    """The port of a `hookonce serve`."""
    place, port = tmp_path_factory.mktemp("receiver"), free_port()
    (place / "hookonce.toml").write_text(CONFIGURATION)
    with fresh_database() as database_url, fresh_redis() as redis_url:
        environ = clean_environ() | SECRETS | {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        desk = f"127.0.0.1:{free_port()}"
        serve = ["serve", "--bind", f"127.0.0.1:{port}", "--desk", desk]
        command = [sys.executable, "-m", "hookonce.receiver.cli", *serve]
        with running(command, port, cwd=place, env=environ | {"WEB_CONCURRENCY": "1"}):
            yield port


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy_port(request, receiver_port, tmp_path_factory):
    """The port of a proxy before it."""
    program = shutil.which(request.param, path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"{request.param} is not installed")
    place, port = tmp_path_factory.mktemp(request.param), free_port()
    command = {"nginx": nginx, "caddy": caddy}[request.param](place, port, receiver_port)
    with running([program, *command], port, cwd=place, env=os.environ | {"HOME": str(place)}):
        yield port


def nginx(place, port, receiver_port):
    server = changed("nginx.conf", receiver_port, ("listen 443 ssl;", f"listen 127.0.0.1:{port};"))
    (place / "site").write_text(re.sub(r"ssl_certificate.*;", "", server))
    text = (ROOT / "deploy" / "nginx-main.conf").read_text()
    for old, new in (
        ("user www-data;", "daemon off; master_process off;"),
        ("/run/nginx.pid", f"{place}/pid"),
        ("include /etc/nginx/modules-enabled/*.conf;", ""),
        ("include /etc/nginx/conf.d/*.conf;", PLACES.format(place=place)),
        ("/etc/nginx/sites-enabled/*", f"{place}/site"),
        ("/var/log/nginx/error.log", "stderr"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (place / "nginx.conf").write_text(text)
    return ["-c", str(place / "nginx.conf"), "-p", str(place)]


def caddy(place, port, receiver_port):
    site = changed("Caddyfile", receiver_port, ("hooks.example.com {", f"http://127.0.0.1:{port} {{"))
    (place / "Caddyfile").write_text(
        site.replace("\tservers {", "\tadmin off\n\tauto_https off\n\tservers {")
    )
    return ["run", "--config", str(place / "Caddyfile"), "--adapter", "caddyfile"]


def changed(file, receiver_port, place):
    text = (ROOT / "deploy" / file).read_text()
    for old, new in (("127.0.0.1:8000", f"127.0.0.1:{receiver_port}"), place):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@contextlib.contextmanager
def running(command, port, **options):
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options) as process:
        try:
            until(lambda: answers(port), seconds=SECONDS, what=command[0], process=process)
            yield
        finally:
            process.terminate()


def answers(port):
    with contextlib.suppress(OSError):
        return bool(ask(port, "GET", "/"))
    return False


def ask(port, method, path, body=None, **headers):
    """The status and the body of an answer; the path goes out as it is written."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def stripe(event_id, size):
    body = json.dumps({"id": event_id, "type": "invoice.paid", "object": "event", "pad": "x" * size}).encode()
    return body, load("stripe").sign(body, SECRETS["STRIPE_SECRET"], datetime.now(UTC))


@pytest.mark.parametrize("size", [10, 12_000_000])
def test_proxy_passes_deliveries_on_as_they_are(proxy_port, size):
    body, headers = stripe(f"evt_{proxy_port}_{size}", size)

    status, answer = ask(proxy_port, "POST", "/hooks/stripe", body, **headers)

    assert (status, json.loads(answer)["status"]) == (200, "accepted")


@pytest.mark.parametrize("query", ["", "?a=%2F%2e&b=c%20d+e&&=%c3%a9", "?next=https%3A//x/../y"])
def test_proxy_leaves_signed_urls_alone(proxy_port, query):
    path = f"/hooks/partner{query}"
    body = json.dumps({"id": f"{proxy_port}{query}", "type": "a"}).encode()
    headers = load("hmac", options=PARTNER).sign(
        body, SECRETS["PARTNER_SECRET"], datetime.now(UTC), url=PUBLIC + path, method="POST"
    )

    status, answer = ask(proxy_port, "POST", path, body, **headers)

    assert (status, json.loads(answer)["status"]) == (200, "accepted")


@pytest.mark.parametrize(
    "path",
    ["/", "/metrics", "/readyz", "/admin", "/api/v1/events", "/hooks/../metrics", "/hooks/%2e%2e/metrics"],
)
def test_proxy_shows_nothing_but_hooks(proxy_port, path):
    status, answer = ask(proxy_port, "GET", path)

    assert status == 404
    assert b"hookonce" not in answer


@pytest.mark.parametrize("path", AT_THE_DESK)
@pytest.mark.parametrize("shape", ROUND)
def test_no_path_leads_to_the_desk(proxy_port, receiver_port, shape, path):
    for port in (proxy_port, receiver_port):
        status, answer = ask(port, "GET", shape.format(path, path[1:]))

        assert status in {400, 404, 405}
        assert b"hookonce_" not in answer


def test_proxy_leaves_it_to_the_receiver_to_refuse(proxy_port):
    body, headers = stripe("evt_forged", 10)

    status, answer = ask(proxy_port, "POST", "/hooks/stripe", body + b" ", **headers)

    assert (status, json.loads(answer)["code"]) == (401, "bad_signature")


def test_proxy_refuses_what_is_larger_than_anybody_sends(proxy_port):
    body, headers = stripe("evt_large", 28_000_000)

    with contextlib.suppress(
        BrokenPipeError, ConnectionResetError
    ):  # refused by its length, before it was sent
        assert ask(proxy_port, "POST", "/hooks/stripe", body, **headers)[0] == 413
