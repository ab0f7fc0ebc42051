"""What is odd and allowed: it is taken, stored whole, and a second copy is a duplicate."""

import hashlib
import json
import uuid

import psycopg
import pytest

from tests.http.conftest import OURS
from tests.support.raw_http import chunked, connect, converse, request


def unique():
    return f"evt_{uuid.uuid4().hex}"


def stored(server, body):
    """The row and the kept bytes of the event whose body is this one."""
    with psycopg.connect(server.database_url) as connection:
        return connection.execute(
            "SELECT e.event_id, e.type, e.account, b.body FROM hookonce.event_states e"
            " JOIN hookonce.bodies b ON b.event = e.id AND b.received_at = e.received_at WHERE b.body = %s",
            [body],
        ).fetchone()


BODIES = {
    "escaped NUL everywhere": '{{"id":"{id}\\u0000","type":"a\\u0000","account":"b\\u0000","data":"\\u0000"}}',
    "lone surrogate everywhere": '{{"id":"{id}\\ud800","type":"a\\udfff","account":"\\ud800","data":"\\udc00"}}',
    "id of 10 KB": '{{"id":"{id}' + "x" * 10_000 + '","type":"a"}}',
    "type of 10 KB": '{{"id":"{id}","type":"' + "x" * 10_000 + '"}}',
    "account of 10 KB": '{{"id":"{id}","type":"a","account":"' + "x" * 10_000 + '"}}',
    "id of emoji": '{{"id":"{id}' + "\N{PILE OF POO}" * 100 + '","type":"a"}}',
    "id of quotes and line ends": '{{"id":"{id}\\"\\r\\n\\t","type":"a"}}',
    "id that is SQL": '{{"id":"{id}\'; DROP TABLE hookonce.events; --","type":"a"}}',
    "id like a window key": '{{"id":"{id}}}:{{x","type":"a"}}',
    "two ids": '{{"id":"first","type":"a","id":"{id}"}}',
    "byte order mark": '\ufeff{{"id":"{id}","type":"a"}}',
    "integer of 4,000 digits": '{{"id":"{id}","type":"a","data":' + "1" * 4000 + "}}",
    "number below every double": '{{"id":"{id}","type":"a","data":1e-999}}',
    "time beyond datetime": '{{"id":"{id}","type":"a","created":1e300}}',
    "time of the year 9999": '{{"id":"{id}","type":"a","created":"9999-12-31T23:59:59-12:00"}}',
    "nested 200 lists": '{{"id":"{id}","type":"a","data":' + "[" * 200 + "]" * 200 + "}}",
    "account not a text": '{{"id":"{id}","type":"a","account":[null]}}',
}


@pytest.mark.parametrize("pattern", BODIES.values(), ids=BODIES)
def test_receiver_keeps_odd_bodies_byte_for_byte(server, pattern):
    body = pattern.format(id=unique()).encode()

    answers = [server.deliver(body) for _ in range(2)]

    assert [(a.status, a.document["status"]) for a in answers] == [(200, "accepted"), (200, "duplicate")]
    assert answers[1].headers["idempotency-replayed"] == "true"
    assert answers[0].document["events"][0]["event_id"] == json.loads(body)["id"]
    assert bytes(stored(server, body)[3]) == body


def test_receiver_stores_the_hash_of_long_ids(server):
    event_id = unique() * 300
    body = json.dumps({"id": event_id, "type": "a"}).encode()

    server.deliver(body)

    assert hashlib.sha256(event_id.encode()).hexdigest() in stored(server, body)[0]


def test_receiver_tells_ids_apart_that_differ_in_a_nul(server):
    event_id = unique()
    bodies = [
        json.dumps({"id": event_id + end, "type": "a"}).encode() for end in ("", "\0", "\ufffd", "\ud800")
    ]

    answers = [server.deliver(body).document["status"] for body in bodies]

    assert answers == ["accepted"] * 4


def event(event_id=None):
    return json.dumps({"id": event_id or unique(), "type": "a"}).encode()


def head_of(server, body, source="stripe"):
    """The headers of a signed delivery without those that these tests set themselves."""
    lines = server.signed(body, source).partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    own = ("host", "content-length", "content-type")
    return [tuple(line.split(": ", 1)) for line in lines if not line.lower().startswith(own)]


def in_chunks(server, body):
    headers = [*head_of(server, body), ("Transfer-Encoding", "chunked")]
    return request(headers=headers) + chunked(*(body[n : n + 7] for n in range(0, len(body), 7)))


WAYS = {
    "in chunks": in_chunks,
    "in chunks with extensions": lambda s, body: (
        request(headers=[*head_of(s, body), ("Transfer-Encoding", "Chunked")])
        + b'%x;a="b;c";d\r\n%b\r\n000\r\nX-Trailer: yes\r\n\r\n' % (len(body), body)
    ),
    "by HTTP/1.0": lambda s, body: request(headers=head_of(s, body), body=body, version="HTTP/1.0"),
    "with a query": lambda s, body: request(
        target="/hooks/stripe?a=%00%ff&a=b;c&&=", headers=head_of(s, body), body=body
    ),
    "path percent-encoded": lambda s, body: request(
        target="/hooks/%73tripe", headers=head_of(s, body), body=body
    ),
    "slash percent-encoded": lambda s, body: request(
        target="/hooks%2fstripe", headers=head_of(s, body), body=body
    ),
    "no host, by HTTP/1.0": lambda s, body: request(
        headers=head_of(s, body), body=body, version="HTTP/1.0"
    ).replace(b"Host: test\r\n", b""),
    "empty line first": lambda s, body: b"\r\n" + s.signed(body),
    "an upgrade offered, as Java does": lambda s, body: request(
        headers=[
            *head_of(s, body),
            ("Connection", "Upgrade, HTTP2-Settings"),
            ("Upgrade", "h2c"),
            ("HTTP2-Settings", "AAEAAEAAAAIAAAABAAMAAABk"),
        ],
        body=body,
    ),
    "other case": lambda s, body: request(
        headers=[(name.swapcase(), value) for name, value in head_of(s, body)], body=body
    ),
    "blanks around the value": lambda s, body: request(
        headers=[(name, f"\t  {value} \t") for name, value in head_of(s, body)], body=body
    ),
    "identity encoding": lambda s, body: request(
        headers=[*head_of(s, body), ("Content-Encoding", " Identity ")], body=body
    ),
    "wrong content type": lambda s, body: request(
        headers=[*head_of(s, body), ("Content-Type", "\u00e9/\u00ff; charset=utf-7")], body=body
    ),
    "form content type": lambda s, body: request(
        headers=[*head_of(s, body), ("Content-Type", "application/x-www-form-urlencoded")], body=body
    ),
    "multipart content type": lambda s, body: request(
        headers=[*head_of(s, body), ("Content-Type", "multipart/form-data; boundary=x")], body=body
    ),
    "not ASCII elsewhere": lambda s, body: request(
        headers=[*head_of(s, body), ("X-Name", "caf\u00e9\u00ff")], body=body
    ),
    "header of 60 KB": lambda s, body: request(
        headers=[*head_of(s, body), ("X-Long", "x" * 60_000)], body=body
    ),
    "signature in two headers": lambda s, body: request(
        headers=[(name, part) for name, value in head_of(s, body) for part in value.split(",")],
        body=body,
    ),
    "headers with an underscore": lambda s, body: request(
        headers=[*head_of(s, body), ("X_Trace_Id", "1"), ("Stripe_Signature", "2")], body=body
    ),
    "asking first": lambda s, body: request(
        headers=[*head_of(s, body), ("Expect", "100-Continue")], body=body
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_receiver_takes_deliveries_sent_in_odd_ways(server, way):
    body = event()

    answer = server.exchange(way(server, body))

    assert (answer.status, answer.document["status"]) == (200, "accepted")
    assert bytes(stored(server, body)[3]) == body


WAYS_OF_PROXIES = {
    "the Content-Type twice": lambda s, body: request(
        headers=[
            *head_of(s, body),
            ("Content-Type", "application/json"),
            ("content-type", "application/json"),
        ],
        body=body,
    ),
    "UTF-8 in the query": lambda s, body: request(
        target="/hooks/stripe?name=J\u00c3\u00bcrgen", headers=head_of(s, body), body=body
    ),
}
"""gunicorn's own parser refuses both."""


@OURS
@pytest.mark.parametrize("way", WAYS_OF_PROXIES.values(), ids=WAYS_OF_PROXIES)
def test_our_worker_takes_what_proxies_let_pass(server, way):
    body = event()

    answer = server.exchange(way(server, body))

    assert (answer.status, answer.document["status"]) == (200, "accepted")


@pytest.mark.parametrize(
    "source", ["stripe", "github", "gitlab", "slack", "shopify", "standard_webhooks", "partner"]
)
def test_receiver_takes_what_every_sender_signs(server, source):
    body = json.dumps({"id": unique(), "event_id": unique(), "type": "a", "event": "a"}).encode()

    answers = [server.deliver(body, source, event_id="d-" + unique()) for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 200]


def test_receiver_takes_a_body_of_exactly_the_limit(server):
    start = b'{"id":"%b","type":"a","filler":"' % unique().encode()
    body = start + b"x" * (server.max_body - len(start) - 2) + b'"}'

    answer = server.deliver(body)

    assert len(body) == server.max_body
    assert answer.document["status"] == "accepted"


def test_receiver_answers_pipelined_deliveries_in_order(server):
    bodies = [event() for _ in range(5)]
    bodies += bodies[:1]

    with connect(server.port) as connection:
        connection.sendall(b"".join(server.signed(body) for body in bodies[:-1]))
        answers = list(converse(connection, server.signed(bodies[-1]), half_close=True))

    assert [a.document["events"][0]["event_id"] for a in answers] == [json.loads(b)["id"] for b in bodies]
    assert [a.document["status"] for a in answers] == ["accepted"] * 5 + ["duplicate"]


def test_receiver_keeps_the_connection_after_a_rejection(server):
    forged = request(headers=[("Stripe-Signature", "t=1,v1=" + "0" * 64)], body=event())

    with connect(server.port) as connection:
        answers = list(converse(connection, forged + server.signed(event()), half_close=True))

    assert [answer.status for answer in answers] == [401, 200]


def test_options_is_answered_with_the_methods(server):
    answer = server.exchange(request("OPTIONS"))

    assert (answer.status, answer.headers["allow"], answer.body) == (204, "POST, OPTIONS", b"")


UNREADABLE = {
    "empty": b"",
    "cut off": b'{"id":"evt_1","type":"a"',
    "not UTF-8": b'{"id":"evt_1","type":"\xff"}',
    "Latin-1": '{"id":"evt_1","type":"\u00e9"}'.encode("latin-1"),
    "UTF-16": '{"id":"evt_1","type":"a"}'.encode("utf-16"),
    "UTF-16 without a mark": '{"id":"evt_1","type":"a"}'.encode("utf-16-le"),
    "surrogate in UTF-8": b'{"id":"evt_1","type":"\xed\xa0\x80"}',
    "bare NUL": b'{"id":"evt_1","type":"a\0"}',
    "NULs only": b"\0" * 1000,
    "nested 100,000 lists": b"[" * 100_000,
    "nested 100,000 objects": b'{"a":' * 100_000,
    "NaN": b'{"id":"evt_1","type":"a","data":NaN}',
    "Infinity": b'{"id":"evt_1","type":"a","data":-Infinity}',
    "1e999": b'{"id":"evt_1","type":"a","data":1e999}',
    "integer of 5,000 digits": b'{"id":"evt_1","type":"a","data":' + b"1" * 5000 + b"}",
    "100,000 lists in a list": b'{"id":"evt_1","type":"a","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_receiver_keeps_signed_bodies_it_cannot_read(server, body):
    answer = server.deliver(body)

    assert answer.status == 200
    assert (stored(server, body)[1], bytes(stored(server, body)[3])) == ("unreadable", body)
