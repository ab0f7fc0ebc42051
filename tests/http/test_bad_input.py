"""Whatever arrives, the answer is one of the documented ones, and what is refused is not stored."""

import time
import zlib

import pytest

from tests.http.conftest import OURS
from tests.support.raw_http import chunked, connect, converse, request

DOCUMENTED = {200, 204, 400, 401, 404, 405, 408, 409, 413, 415, 503}
EVENT = b'{"id":"evt_1","type":"invoice.paid"}'
PROBLEM = "application/problem+json"


def raw(head, body=b"", *, target="/hooks/stripe", version="HTTP/1.1"):
    """A POST whose header lines are given as they shall be on the wire."""
    return f"POST {target} {version}\r\nHost: test\r\n".encode() + head + b"\r\n\r\n" + body


NOT_HTTP = {400, 401, 404, 405, 414, 417, 431, 501}
"""How other workers refuse, in their own words, what ours calls no proper request; some pass it on and are told."""


def refused(server, answer, status, code):
    """Check a refusal: the right words, in problem+json, and nothing that the sender must not learn."""
    is_theirs = answer is None or (status, code) == (400, "bad_header")  # or it hangs up on who still sends
    if not server.is_ours and is_theirs:
        assert answer is None or answer.status in NOT_HTTP
        return
    assert (answer.status, answer.code) == (status, code)
    assert answer.headers["content-type"] == PROBLEM
    assert set(answer.document) == {"type", "title", "status", "code"}
    assert answer.document["status"] == status
    assert ("retry-after" in answer.headers) == (status == 503)


@pytest.fixture(autouse=True)
def nothing_stored(server):
    """Whatever a test of this module sends, the ledger must not grow by it."""
    before = server.events()
    yield
    assert server.events() == before


METHODS = [
    ("GET", 405, "bad_method"),
    ("PUT", 405, "bad_method"),
    ("PATCH", 405, "bad_method"),
    ("DELETE", 405, "bad_method"),
    ("TRACE", 405, "bad_method"),
    ("CONNECT", 400, "bad_header"),
    ("PROPFIND", 405, "bad_method"),
    ("post", 400, "bad_header"),
    ("P#ST", 400, "bad_header"),
    ("POST\tX", 400, "bad_header"),
    ("X" * 200, 400, "bad_header"),
]


@pytest.mark.parametrize(("method", "status", "code"), METHODS)
def test_receiver_refuses_every_other_method(server, method, status, code):
    answer = server.exchange(request(method, body=EVENT))

    refused(server, answer, status, code)
    assert status != 405 or answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("method", "target", "status", "allow"),
    [
        ("POST", "/livez", 405, "GET, HEAD"),
        ("OPTIONS", "/readyz", 405, "GET, HEAD"),
        ("DELETE", "/metrics", 405, "GET, HEAD"),
    ],
)
def test_operators_pages_name_their_methods_when_refusing(server, method, target, status, allow):
    answer = server.exchange(request(method, target))

    refused(server, answer, status, "bad_method")
    assert answer.headers["allow"] == allow


@pytest.mark.parametrize(
    ("target", "status"), [("/livez", 200), ("/readyz", 200), ("/hooks/stripe", 405), ("/nowhere", 404)]
)
def test_receiver_sends_no_body_to_head(server, target, status):
    answer = server.exchange(request("HEAD", target, {"Connection": "close"}))

    assert (answer.status, answer.body) == (status, b"")


PATHS = [
    "/",
    "/nowhere",
    "/hooks",
    "/hooks/",
    "/hooks/unknown",
    "/hooks/stripe/",
    "/hooks/stripe/x",
    "/hooks//stripe",
    "//hooks/stripe",
    "/hooks/./stripe",
    "/hooks/x/../stripe",
    "/hooks/..%2fstripe",
    "/hooks/%2e%2e/hooks/stripe",
    "/hooks/stripe%00",
    "/hooks/stripe%0d%0aX-Evil:%20yes",
    "/hooks/%ff%fe",
    "/hooks/STRIPE",
    "/hooks/stripe%20",
    "/hooks/stripe;a=b",
    "/hooks/stripe%3fa=b",
    "/hooks/" + "a" * 3000,
    "/hooks/%E2%9C%93",
    "/hooks/__proto__",
    "/static/x",
]


@pytest.mark.parametrize("target", PATHS)
def test_receiver_knows_no_source_at_odd_paths(server, target):
    answer = server.exchange(request(target=target, headers=signature(server), body=EVENT))

    refused(server, answer, 404, "unknown_source")
    assert "evil" not in str(answer.headers).lower()


@pytest.mark.parametrize(
    "target",
    [
        "",
        "*",
        "http://test/nowhere",
        "/hooks/#unknown",
        "hooks stripe",
        "/hooks/stripe HTTP/1.1 HTTP/1.1",
        "/hooks/\u00e9",
        "/hooks/\x7f",
        "/" + "a" * 9000,
    ],
)
def test_receiver_refuses_request_lines_that_are_none(server, target):
    answer = server.exchange(request(target=target, body=EVENT))

    refused(server, answer, 400, "bad_header")


def signature(server, body=EVENT):
    """The headers of a genuine delivery, without the body's length."""
    head = server.signed(body).partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    return [tuple(line.split(": ", 1)) for line in head if not line.startswith(("Host", "Content-Length"))]


FRAMING = {
    "length not a number": (raw(b"Content-Length: ten", EVENT), 400, "bad_header"),
    "length negative": (raw(b"Content-Length: -1", EVENT), 400, "bad_header"),
    "length with a sign": (raw(b"Content-Length: +36", EVENT), 400, "bad_header"),
    "length in hex": (raw(b"Content-Length: 0x24", EVENT), 400, "bad_header"),
    "length of 5000 digits": (raw(b"Content-Length: " + b"9" * 5000, EVENT), 400, "bad_header"),
    "length of 19 digits": (raw(b"Content-Length: " + b"9" * 19, EVENT), 413, "too_large"),
    "length in superscript": (raw(b"Content-Length: \xb2", EVENT), 400, "bad_header"),
    "two equal lengths": (raw(b"Content-Length: 36\r\nContent-Length: 36", EVENT), 400, "bad_header"),
    "two lengths": (raw(b"Content-Length: 36\r\nContent-Length: 7", EVENT), 400, "bad_header"),
    "lengths in a list": (raw(b"Content-Length: 36, 36", EVENT), 400, "bad_header"),
    "length empty": (raw(b"Content-Length: ", EVENT), 400, "bad_header"),
    "length too big, then silence": (raw(b"Content-Length: 100", EVENT), 400, "bad_body"),
    "length and chunked": (
        raw(b"Content-Length: 36\r\nTransfer-Encoding: chunked", chunked(EVENT)),
        400,
        "bad_header",
    ),
    "chunked and length": (
        raw(b"Transfer-Encoding: chunked\r\nContent-Length: 4", chunked(EVENT)),
        400,
        "bad_header",
    ),
    "chunked twice": (raw(b"Transfer-Encoding: chunked, chunked", chunked(EVENT)), 400, "bad_header"),
    "chunked not last": (raw(b"Transfer-Encoding: chunked, identity", chunked(EVENT)), 400, "bad_header"),
    "chunked misspelt": (raw(b"Transfer-Encoding: xchunked", chunked(EVENT)), 400, "bad_header"),
    "chunked behind a tab": (raw(b"Transfer-Encoding:\x0bchunked", chunked(EVENT)), 400, "bad_header"),
    "chunked quoted": (raw(b'Transfer-Encoding: "chunked"', chunked(EVENT)), 400, "bad_header"),
    "transfer coding gzip": (raw(b"Transfer-Encoding: gzip", EVENT), 400, "bad_header"),
    "transfer coding gzip, chunked": (
        raw(b"Transfer-Encoding: gzip, chunked", chunked(EVENT)),
        400,
        "bad_header",
    ),
    "space before the colon": (raw(b"Transfer-Encoding : chunked", chunked(EVENT)), 400, "bad_header"),
    "chunked in HTTP/1.0": (
        raw(b"Transfer-Encoding: chunked", chunked(EVENT), version="HTTP/1.0"),
        400,
        "bad_header",
    ),
    "chunk size not hex": (raw(b"Transfer-Encoding: chunked", b"zz\r\n\r\n"), 400, "bad_body"),
    "chunk size negative": (raw(b"Transfer-Encoding: chunked", b"-1\r\nx\r\n0\r\n\r\n"), 400, "bad_body"),
    "chunk size empty": (raw(b"Transfer-Encoding: chunked", b"\r\nx\r\n"), 400, "bad_body"),
    "chunk size of 100 KB": (raw(b"Transfer-Encoding: chunked", b"0" * 100_000), 400, "bad_body"),
    "chunk longer than it says": (
        raw(b"Transfer-Encoding: chunked", b"3\r\nabcdef\r\n0\r\n\r\n"),
        400,
        "bad_body",
    ),
    "chunk by bare LF": (raw(b"Transfer-Encoding: chunked", b"3\nabc\n0\n\n"), 400, "bad_body"),
    "chunks without an end": (raw(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n"), 400, "bad_body"),
    "chunk extension broken": (
        raw(b"Transfer-Encoding: chunked", b"3;\x01\r\nabc\r\n0\r\n\r\n"),
        400,
        "bad_body",
    ),
    "trailer with a length": (
        raw(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\nContent-Length: 7\r\n\r\n"),
        400,
        "bad_body",
    ),
    "trailer folded": (
        raw(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\nA: b\r\n c\r\n\r\n"),
        400,
        "bad_body",
    ),
    "trailer without a colon": (
        raw(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\nnonsense\r\n\r\n"),
        400,
        "bad_body",
    ),
    "trailers, 200 of them": (
        raw(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\n" + b"A: b\r\n" * 200 + b"\r\n"),
        400,
        "bad_body",
    ),
    "chunked oversize": (
        raw(b"Transfer-Encoding: chunked", chunked(*[b"x" * 65536] * 17)),
        413,
        "too_large",
    ),
    "one chunk oversize": (
        raw(b"Transfer-Encoding: chunked", b"fffffff\r\n" + b"x" * 1_400_000),
        413,
        "too_large",
    ),
    "bare LF in the head": (b"POST /hooks/stripe HTTP/1.1\nHost: test\n\n", 400, "bad_header"),
    "bare CR in the head": (raw(b"A: b\rC: d"), 400, "bad_header"),
    "folded header": (raw(b"A: b\r\n c: d"), 400, "bad_header"),
    "folded first header": (b"POST /hooks/stripe HTTP/1.1\r\n Host: test\r\n\r\n", 400, "bad_header"),
    "NUL in a header": (raw(b"A: b\0c"), 400, "bad_header"),
    "NUL in a header's name": (raw(b"A\0: b"), 400, "bad_header"),
    "header without a colon": (raw(b"this-is-the-secret-of-stripe-itself"), 400, "bad_header"),
    "header without a name": (raw(b": b"), 400, "bad_header"),
    "header in UTF-8 by name": (raw("Sché: b".encode()), 400, "bad_header"),
    "no host": (b"POST /hooks/stripe HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400, "bad_header"),
    "two hosts": (raw(b"Host: other"), 400, "bad_header"),
    "two content types": (raw(b"Content-Type: a/b\r\nContent-Type: c/d"), 400, "bad_header"),
    "header of 200 KB": (raw(b"A: " + b"x" * 200_000), 400, "bad_header"),
    "200 headers": (raw(b"\r\n".join(b"A-%d: b" % n for n in range(200))), 400, "bad_header"),
    "expectation unknown": (raw(b"Expect: 200-ok"), 400, "bad_header"),
    "schemes that differ": (
        raw(b"X-Forwarded-Proto: https\r\nX-Forwarded-Ssl: off", EVENT),
        401,
        "missing_header",
    ),
    "script name of a proxy": (raw(b"SCRIPT_NAME: /elsewhere"), 401, "missing_header"),
    "path of a proxy": (raw(b"PATH_INFO: /livez"), 401, "missing_header"),
    "two spaces after the method": (b"POST  /hooks/stripe HTTP/1.1\r\nHost: test\r\n\r\n", 400, "bad_header"),
    "version 2.0": (b"POST /hooks/stripe HTTP/2.0\r\nHost: test\r\n\r\n", 400, "bad_header"),
    "version 9.9": (b"POST /hooks/stripe HTTP/9.9\r\nHost: test\r\n\r\n", 400, "bad_header"),
    "no version": (b"POST /hooks/stripe\r\n\r\n", 400, "bad_header"),
    "HTTP/2 with prior knowledge": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad_header"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "bad_header"),
    "PROXY protocol": (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nPOST / HTTP/1.1\r\n\r\n", 400, "bad_header"),
    "only NULs": (b"\0" * 100 + b"\r\n\r\n", 400, "bad_header"),
    "brotli": (raw(b"Content-Encoding: br\r\nContent-Length: 36", EVENT), 415, "unsupported_encoding"),
    "gzip of gzip": (
        raw(b"Content-Encoding: gzip, gzip\r\nContent-Length: 36", EVENT),
        415,
        "unsupported_encoding",
    ),
    "gzip of nothing": (raw(b"Content-Encoding: gzip"), 401, "missing_header"),
    "gzip that is none": (raw(b"Content-Encoding: gzip\r\nContent-Length: 36", EVENT), 401, "missing_header"),
    "encodings in a row": (
        raw(b"Content-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 36", EVENT),
        415,
        "unsupported_encoding",
    ),
    "no body": (raw(b"Content-Length: 0"), 401, "missing_header"),
    "no length at all": (raw(b"A: b"), 401, "missing_header"),
}


@pytest.mark.parametrize(("data", "status", "code"), FRAMING.values(), ids=FRAMING)
def test_receiver_refuses_broken_framing(server, data, status, code):
    answer = server.exchange(data, half_close=True)

    refused(server, answer, status, code)


def bomb(window):
    """A gibibyte of zeros, compressed to a megabyte, in pieces: nothing here takes as much memory either."""
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(1024)) + packer.flush()


@pytest.mark.parametrize(("coding", "window"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
@pytest.mark.parametrize("is_signed", [True, False])
def test_receiver_refuses_bombs_at_once(server, coding, window, is_signed):
    body = bomb(window)[: server.max_body]
    sent = (
        server.signed(body) if is_signed else request(body=body, headers=[("Stripe-Signature", "t=1,v1=0")])
    )
    began = time.monotonic()

    answer = server.exchange(sent.replace(b"\r\n", f"\r\nContent-Encoding: {coding}\r\n".encode(), 1))

    assert answer.status in {400, 401, 413}
    assert time.monotonic() - began < 10


def test_receiver_refuses_bodies_over_the_limit(server):
    answer = server.exchange(server.signed(event_of(server.max_body + 1)))

    refused(server, answer, 413, "too_large")


def event_of(size, event_id="evt_big"):
    start = b'{"id":"%b","type":"a","filler":"' % event_id.encode()
    return start + b"x" * (size - len(start) - 2) + b'"}'


def stamped(signature_value):
    return f"t={now()},{signature_value}"


def genuine(server, source="stripe"):
    head = server.signed(EVENT, source).decode("latin-1")
    return next(line.partition("v1=")[2] for line in head.split("\r\n") if "v1=" in line)


def now():
    return int(time.time())


SIGNATURES = {
    "none": (lambda _: [], 401, "missing_header"),
    "empty": (lambda _: [("Stripe-Signature", "")], 401, "bad_header"),
    "another source's": (
        lambda s: [("Stripe-Signature", stamped("v1=" + genuine(s, "billing")))],
        401,
        "bad_signature",
    ),
    "10,000 parts": (
        lambda _: [("Stripe-Signature", stamped(",".join(["v1=0"] * 10_000)))],
        401,
        "bad_header",
    ),
    "10,000 empty parts": (lambda _: [("Stripe-Signature", "," * 10_000)], 401, "bad_header"),
    "900 right-looking parts": (
        lambda _: [("Stripe-Signature", stamped(",".join(["v1=" + "0" * 64] * 900)))],
        401,
        "bad_signature",
    ),
    "not ASCII": (lambda _: [("Stripe-Signature", stamped("v1=\u00e9\u00ff"))], 401, "bad_header"),
    "not ASCII, right length": (
        lambda _: [("Stripe-Signature", stamped("v1=" + "\u00e9" * 64))],
        401,
        "bad_header",
    ),
    "60 KB": (lambda _: [("Stripe-Signature", "v" * 60_000)], 401, "bad_header"),
    "underscore in the name": (
        lambda s: [("Stripe_Signature", stamped("v1=" + genuine(s)))],
        401,
        "missing_header",
    ),
    "query, not header": (lambda _: [("X-Original-Url", "/?Stripe-Signature=1")], 401, "missing_header"),
}


@pytest.mark.parametrize(("headers", "status", "code"), SIGNATURES.values(), ids=SIGNATURES)
def test_receiver_refuses_wrong_signatures(server, headers, status, code):
    answer = server.exchange(request(headers=headers(server), body=EVENT))

    refused(server, answer, status, code)


ALTERED = {
    "a byte more": lambda whole: whole.replace(b"Content-Length: 36", b"Content-Length: 37") + b" ",
    "a byte less": lambda whole: whole.replace(b"Content-Length: 36", b"Content-Length: 35"),
    "a byte changed": lambda whole: whole.replace(b"evt_1", b"evt_2"),
    "case changed": lambda whole: whole.replace(b"invoice", b"Invoice"),
    "sent to another source": lambda whole: whole.replace(b"/hooks/stripe", b"/hooks/billing"),
    "line end added": lambda whole: whole.replace(b"Content-Length: 36", b"Content-Length: 38") + b"\r\n",
}


@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED)
def test_receiver_refuses_altered_deliveries(server, alter):
    answer = server.exchange(alter(server.signed(EVENT)))

    refused(server, answer, 401, "bad_signature")


OTHER_SENDERS = {
    "gitlab not ASCII": ("gitlab", [("X-Gitlab-Token", "\u00e9")], 401, "bad_signature"),
    "source without a secret": ("keyless", [("Stripe-Signature", "t=1,v1=" + "0" * 64)], 503, "no_secret"),
    "source without a secret, no header": ("keyless", [], 503, "no_secret"),
}


@pytest.mark.parametrize(("source", "headers", "status", "code"), OTHER_SENDERS.values(), ids=OTHER_SENDERS)
def test_receiver_refuses_forgeries_of_every_sender(server, source, headers, status, code):
    answer = server.exchange(request(target=f"/hooks/{source}", headers=headers, body=EVENT))

    refused(server, answer, status, code)


def test_receiver_ends_the_connection_after_broken_framing(server):
    smuggled = request("GET", "/livez")

    with connect(server.port) as connection:
        data = raw(b"Content-Length: 4\r\nTransfer-Encoding: chunked", chunked(b"abc") + smuggled)
        answers = list(converse(connection, data))

    assert [answer.status for answer in answers] == [400]


@OURS
def test_receiver_serves_nothing_after_a_body_it_refused_to_read(server):
    hidden = request("GET", "/livez")

    with connect(server.port) as connection:
        answers = list(converse(connection, request("PUT", body=hidden) + hidden))

    assert [(answer.status, answer.headers["connection"]) for answer in answers] == [(405, "close")]
