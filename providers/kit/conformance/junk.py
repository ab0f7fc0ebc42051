"""Header values and bodies that no sender sends, and that have crashed somebody's code."""

from collections.abc import Mapping
from dataclasses import replace

from hookonce.providers import Delivery
from hookonce.providers.kit.conformance.cases import Case, expect, refusal

JUNK_TEXTS = (
    "", " ", "=", ",", "v1=", "t=,v1=", "t=1,t=2,v1=0", "sha256=", "v1,", "v1a,AAAA",
    "Basic !!!", "Bearer ", "\x00",
    "é", "\u2713", "\ud800", "1e9", "-1", "+1", " 12", "1_000", "١٢٣", "12.0", "inf", "nan",
    "9" * 5000,
    "a" * 10_000, "," * 5000, "v1=0," * 2000, "v1,AAAA " * 2000, "2026-13-45T99:99:99Z",
    "0x10", "%00", "a,b",
)  # fmt: skip
JUNK_BODIES = (
    b"", b" ", b"\x00", b"null", b"true", b"0", b'"x"', b"[]", b"{}", b"[[]]", b"[1,null,{}]",
    b"[1", b'{"id":',
    b'{"id":NaN,"type":"a"}', b'{"id":1e999,"type":"a"}', b'{"id":true,"type":"a"}',
    b'{"id":[],"type":{}}',
    b'{"id":"","type":""}', b'{"id":"\\ud800","type":"\\u0000"}',
    b'{"id":"a","id":2,"type":"b"}', b"1" * 5000,
    b'{"id":' + b"1" * 5000 + b',"type":"a"}', b"[" * 100_000, b'{"a":' * 100_000,
    b"\xff\xfe{\x00}\x00",
    "{}".encode("utf-16"), b"\xef\xbb\xbf{}", b"\xff", b"a=%ff", b"payload=", b"payload=[",
    b"payload=%7B%7D",
    b"payload=" + b"[" * 50_000, b"a&" * 5000, b'{"type":"url_verification","challenge":1}',
    b"ssl_check=1",
    b'{"event":[],"team":1,"data":null,"events":{"a":1}}', b'{"created":1e300,"id":"a","type":"b"}',
)  # fmt: skip


def check_junk(case: Case) -> None:
    """Whatever bytes arrive, only Rejected leaves a provider, and events are well-formed."""
    for name in case.delivery.headers:
        for value in JUNK_TEXTS:
            put_junk(case, {**case.delivery.headers, name: value}, case.delivery.body)
    for body in JUNK_BODIES:
        put_junk(case, case.delivery.headers, body)
        put_junk(case, {}, body)


def put_junk(case: Case, headers: Mapping[str, str], body: bytes) -> None:
    """Put one odd delivery to the provider: it may be refused, or have events, and do nothing else."""
    delivery = replace(case.delivery, headers=headers, body=body)
    case.verdict(delivery)
    refusal(lambda: _expect_events(case, delivery))
    refusal(lambda: case.probe(delivery, [case.secret]))


def _expect_events(case: Case, delivery: Delivery) -> None:
    for event in case.events(delivery):
        texts = isinstance(event.id, str) and isinstance(event.type, str) and event.id and event.type
        expect(texts, f"an event has the id {event.id!r:.80} and the type {event.type!r:.80}")
