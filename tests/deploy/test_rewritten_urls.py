"""Senders that sign their URL, behind a real nginx that rewrites it: a source says the URL that its sender knows."""

import os
import shutil
import threading
from dataclasses import replace
from functools import cache

import pytest
from werkzeug.serving import make_server

from hookonce.providers import Delivery, KeyNeeded
from hookonce.providers.kit.registry import load
from hookonce.receiver.source import Source
from tests.deploy.test_proxies import ask, running
from tests.support.captured import captured
from tests.support.for_each import for_each
from tests.support.page_commands import free_port

SIGNING_A_PART = {"alipay", "contentful"}
"""Senders that sign the path of their URL, which no setting is required for."""
NGINX = """
daemon off; master_process off; pid {place}/pid; error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {place}/body; proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/a; uwsgi_temp_path {place}/b; scgi_temp_path {place}/c;
    server {{
        listen 127.0.0.1:{port};
        location /in/ {{ rewrite ^/in/(.*)$ /hooks/$1 break; proxy_pass http://127.0.0.1:{behind}; }}
        location /gone/ {{ rewrite ^/gone/(.*)$ /hooks/$1? break; proxy_pass http://127.0.0.1:{behind}; }}
    }}
}}
"""
DECLARED = {"header": "x-signature", "id": "$.id", "type": "$.type"}
SECRET = "secret-of-the-rewritten-urls"


@pytest.fixture(scope="module")
def port(receiver, tmp_path_factory):
    """The port of nginx before a receiver."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    place, port = tmp_path_factory.mktemp("nginx"), free_port()
    server = make_server("127.0.0.1", free_port(), receiver.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    (place / "nginx.conf").write_text(NGINX.format(place=place, port=port, behind=server.server_port))
    with running([program, "-c", str(place / "nginx.conf"), "-p", str(place)], port, cwd=place):
        yield port
    server.shutdown()
    thread.join()


@cache
def signing():
    """A captured delivery of each kind whose sender signs its URL or a part of it, as far as anybody else can sign it.

    eBay's URL is in the answer to its challenge alone.
    """
    found = {}
    for case in captured():
        is_signed = case.provider.signs_url or case.name.partition("/")[0] in SIGNING_A_PART
        if is_signed and case.is_genuine and case.signing and not case.name.startswith("ebay/"):
            try:
                case.provider.verify(case.signed(), [case.secret], case.now)
            except KeyNeeded:
                continue
            found[case.name] = case
    return found


def sent(port, delivery, path):
    query = delivery.url.partition("?")[2]
    return ask(
        port,
        delivery.method,
        path + (f"?{query}" if query else ""),
        delivery.body or None,
        **delivery.headers,
    )


def test_each_sender_that_signs_a_url_is_among_them():
    signs = {case.name.partition("/")[0] for case in captured() if case.provider.signs_url}

    left_out = signs - {name.partition("/")[0] for name in signing()}
    assert left_out <= {"ebay", "google_chat"}  # the latter's keys are fetched
    assert {"twilio", "square", "trello", "hubspot", "mandrill", "plivo", "hmac", *SIGNING_A_PART} <= {
        name.partition("/")[0] for name in signing()
    }


@for_each(signing)
def test_delivery_to_a_rewritten_url_is_verified_with_the_url_of_its_source(name, receiver, port):
    case, source = (
        signing()[name],
        name.replace("/", "-").replace("_", "-").replace(" ", "-").replace(",", ""),
    )
    url = f"https://hooks.example.com/in/{source}"
    receiver.now = case.now
    receiver.add(source, case.provider, case.secret)
    delivery = replace(case, delivery=replace(case.delivery, url=url)).signed()
    assert sent(port, delivery, f"/in/{source}")[0] in {401, 406}

    receiver.sources[source] = replace(receiver.sources[source], url=url)

    status, body = sent(port, delivery, f"/in/{source}")
    assert 200 <= status < 300, body


@pytest.mark.parametrize(("option", "value"), [("signed", "{url}.{body}"), ("signed", "{path}.{body}")])
@pytest.mark.parametrize("url", ["https://me:pass@h.example/in/p", "https://h.example/other/place?tenant=7"])
def test_declared_template_covers_the_url_of_the_source(option, value, url, receiver, port):
    provider = load("hmac", options=DECLARED | {option: value})
    receiver.sources["p"] = Source("p", provider, (SECRET,), url=url)
    body = b'{"id":"%d","type":"a"}' % hash((value, url))
    headers = provider.sign(body, SECRET, receiver.now, url=url)

    status, _ = ask(port, "POST", "/gone/p?tenant=7", body, **headers)

    [[stored]] = receiver.query("SELECT url FROM hookonce.bodies WHERE body = %s", body)
    assert (status, stored) == (200, url.replace("me:pass", "[secret]"))


def test_challenge_is_answered_for_the_url_of_the_source(receiver, port):
    url, provider = "https://hooks.example.com/in/ebay", load("ebay")
    token = "a-verification-token-of-32-characters-or-more"
    receiver.sources["ebay"] = Source("ebay", provider, (token,), url=url)
    expected = provider.handshake(Delivery("GET", f"{url}?challenge_code=c0de", {}, b""), [token])

    assert ask(port, "GET", "/in/ebay?challenge_code=c0de") == (200, expected.body)
