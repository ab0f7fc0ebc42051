"""What a stranger's megabyte costs before a provider refuses it, with the collector of cycles set as in a worker."""

import gc
import json
import tracemalloc
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from hashlib import sha256
from time import thread_time
from urllib.parse import parse_qsl, quote_plus

import pytest

from hookonce.providers import Delivery, KeyNeeded, Reason, Rejected
from hookonce.providers.kit.reading import bodies
from hookonce.providers.kit.reading.bodies import json_body, parse_form
from hookonce.receiver.processes.collector import calm_collector
from tests.support.captured import captured, captured_of
from tests.support.for_each import for_each

MOST = 0.060
"""Seconds of this thread's CPU for a megabyte, in the quietest of several runs."""
TIMES_AS_LONG = 3
"""Or as this many times a megabyte of JSON takes to parse at the moment: machines have slow hours."""
RUNS = 8
SIZE = (1 << 20) - 4096
FORM = "application/x-www-form-urlencoded"


def filled(unit, size=SIZE):
    return unit * (size // len(unit))


JSON = {
    "brackets": b"[" + filled(b"[[]],") + b"0]",
    "as many brackets as may be": b"[" + filled(b"[],     ") + b"0]",
    "fractions": b"[1e1," + filled(b"0.0,") + b"0]",
    "extremes": b"[" + filled(b"7e-310,") + b"0]",
    "as many extremes as may be": b"[" + filled(b"7e-310," + b" " * 60) + b"0]",
    "ones": b"[" + filled(b"1,") + b"0]",
    "long numbers": b"[" + filled(b"9" * 4299 + b",") + b"0]",
    "keys": b"{" + b",".join(b'"%x":0' % number for number in range(1 << 16, (1 << 16) + 104_000)) + b"}",
    "text": b'"' + filled("é1".encode()) + b'"',
}
ESCAPED = {name: quote_plus(JSON[name]).encode()[:SIZE] for name in ("brackets", "text", "fractions")}
FORMS = {
    "escapes": b"a=" + filled(b"%41"),
    "escapes of nothing": b"a=" + filled(b"%zz"),
    "escapes and letters": b"a=" + filled("é%41".encode()),
    "fields": filled(b"a=%41&")[:-1],
}
PART = b'--a\r\nContent-Disposition: form-data; name="json"'
PARTS = {
    "semicolons": PART + filled(b";") + b"\r\n\r\nx\r\n--a--",
    "lines": PART + filled(b"\r\n"),
    "heads": filled(PART + b";" * 4000 + b"\r\n\r\nx\r\n"),
    "boundaries": filled(b"\r\n--")[2:],
    "no text": PART + b"\r\n\r\n" + filled(b"\xff") + b"\r\n--a--",
    "brackets": PART + b"\r\n\r\n" + JSON["as many brackets as may be"] + b"\r\n--a--",
}
LONG = 60_000
JUNK = (
    filled(b"v1,AAAA ", LONG),
    filled(b"t=1,v1=0,", LONG),
    filled(b" ", LONG),
    filled(b",", LONG),
    filled(b"a|b&", LONG),
    urlsafe_b64encode(b'{"alg":"ES256","kid":"1","x":[' + filled(b"[],", 40_000) + b"0]}") + b".e30.AA",
)


def read_before_proof(case):
    return case.provider.max_body is not None


def bodies_for(case):
    """Return hostile bodies: bare, and around what a genuine one has, so that more of it is looked at."""
    own = case.delivery.body
    yield from JSON.values()
    yield from FORMS.values()
    yield from PARTS.values()
    name = own.partition(b"=")[0]
    if len(name) < 20 and name != own:
        yield from (name + b"=" + text for text in ESCAPED.values())
        yield from (own + b"&" + text for text in FORMS.values())
    yield own + filled(b"[],     ")
    try:
        said = json_body(replace(case.delivery, readings={}))
    except Rejected:
        return
    if isinstance(said, dict):
        yield from (with_member(said, "hookonce", text) for text in JSON.values())
        for member, value in said.items():
            yield with_member(said, member, JSON["fractions"])
            if isinstance(value, list) and value:
                yield with_member(said, member, JSON["ones"])
                yield with_member(said, member, repeated(value[0]))
    elif isinstance(said, list) and said:
        yield repeated(said[0])


def with_member(said, name, text):
    members = {key: json.dumps(value).encode() for key, value in said.items()} | {name: text}
    return b"{" + b",".join(json.dumps(key).encode() + b":" + value for key, value in members.items()) + b"}"


def repeated(value):
    text = json.dumps(value).encode()
    return b"[" + filled(text + b",", SIZE - len(text)) + text + b"]"


def others_for(case):
    """Return fewer bodies, for providers that read none before they know whose it is."""
    return (case.delivery.body + JSON["text"], JSON["fractions"], FORMS["escapes"], PARTS["semicolons"])


def digest_of(body):
    """Return the header with a body's digest (RFC 9530), which is no proof: anybody can write one."""
    return {"content-digest": f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"}


def deliveries(case):
    """Return what a stranger may send in the place of a genuine delivery, whose signature is kept or broken."""
    kept = dict(case.delivery.headers)
    hostile = (bodies_for if read_before_proof(case) else others_for)(case)
    for body in (each[: case.provider.max_body] for each in hostile):
        yield replace(
            case.delivery, body=body, headers=kept | digest_of(body) if "content-digest" in kept else kept
        )
        if body.startswith(b"a="):
            yield replace(case.delivery, headers={**kept, "content-type": FORM}, body=body)
    for name in kept.keys() - {"content-type"}:
        for junk in JUNK:
            yield replace(case.delivery, headers={**kept, name: junk.decode()}, body=b"{}")
    url = case.delivery.url + ("&" if "?" in case.delivery.url else "?")
    yield replace(case.delivery, url=url + "a=%41&" * 600)
    yield replace(case.delivery, url=url + "%3a" * 1300)


def secrets_of(case):
    """Return the right secret, and another during its rotation."""
    return [case.secret, case.wrong or case.secret]


def is_proven(case, delivery):
    """Whether it passes, which no stranger's does: a token vouches for any body."""
    try:
        case.provider.verify(replace(delivery, readings={}), secrets_of(case), case.now, **case.fetched)
    except (Rejected, KeyNeeded):
        return False
    return True


def seconds(case, delivery):
    """Have a delivery refused as the receiver does: as a probe, under each secret, under all of them."""
    secrets = secrets_of(case)
    asked = [(case.provider.handshake, secrets)] if case.provider.handshake else []
    verify = case.provider.verify
    tried = [(verify, [secret]) for secret in secrets] + [(verify, secrets)]
    unread = replace(delivery, readings={})
    before = thread_time()
    for function, known in asked + tried:
        more = () if (function, known) in asked else (case.now,)
        try:
            function(unread, known, *more, **case.fetched)
        except (Rejected, KeyNeeded):
            continue
    del unread
    return thread_time() - before


def least_seconds_of_json():
    """How long this machine takes at the moment to parse a megabyte of members, which several senders must."""
    body = b"{" + b",".join(b'"%d":0' % n for n in range(10_000, 105_000)) + b"}"
    least = float("inf")
    for _ in range(RUNS):
        before = thread_time()
        json.loads(body)
        least = min(least, thread_time() - before)
    return least


def least_seconds(case, delivery):
    least = float("inf")
    for _ in range(RUNS):
        least = min(least, seconds(case, delivery))
        if least < MOST:
            break
    return least


@pytest.fixture(scope="module", autouse=True)
def worker_collector():
    before = gc.get_threshold()
    calm_collector()
    yield
    gc.set_threshold(*before)


def different(cases):
    """Return one case of each kind that a provider may treat in its own way; one alone where it reads none."""
    chosen = {
        (case.reply is None, case.delivery.body[:1]): case for case in reversed(cases) if not case.reason
    }
    return list(chosen.values()) if read_before_proof(cases[0]) else cases[:1]


def multipart_of(unit):
    return b'--a\r\nContent-Disposition: form-data; name="signature"' + filled(unit, 25 << 20)


def senders():
    return dict.fromkeys(case.provider.name for case in captured())


@for_each(senders)
def test_unsigned_megabyte_costs_little(name):
    for case in different(captured_of(name)):
        for delivery in deliveries(case):
            if seconds(case, delivery) < MOST or is_proven(case, delivery):
                continue
            most = max(MOST, TIMES_AS_LONG * least_seconds_of_json())
            spent = least_seconds(case, delivery)
            assert spent < most, f"{case}: {spent * 1000:.0f} ms for {delivery.body[:60]!r}"


def parses_json(body):
    json.loads(body)


def decodes_a_form(body):
    parse_qsl(body.decode())


def splits_parts(body):
    heads = [part.partition(b"\r\n\r\n")[0].decode("latin-1") for part in body.split(b"\r\n--a")]
    [item.strip() for head in heads for item in head.split(";")]


@pytest.mark.parametrize(
    ("bug", "body"),
    [
        (parses_json, JSON["brackets"]),
        (decodes_a_form, FORMS["escapes and letters"]),
        (splits_parts, PARTS["semicolons"]),
    ],
)
def test_measure_catches_a_provider_that(bug, body):
    def verify(delivery, *_):
        bug(delivery.body)
        raise Rejected(Reason.BAD_SIGNATURE, "no")

    [case, *_] = captured_of("mailgun")
    planted = replace(case, provider=replace(case.provider, verify=verify))

    assert seconds(planted, replace(case.delivery, body=body)) > MOST


def test_chain_of_a_thousand_certificates_costs_little():
    [case, *_] = [each for each in captured_of("apple_app_store") if each.is_genuine]
    header, rest = json.loads(case.delivery.body)["signedPayload"].split(".", 1)
    said = json.loads(urlsafe_b64decode(header + "=="))
    for certificates in (["AAAA"] * 5000, [said["x5c"][0][:400]] * 80, said["x5c"] * 8):
        made = urlsafe_b64encode(json.dumps(said | {"x5c": certificates}).encode()).decode().rstrip("=")
        body = json.dumps({"signedPayload": f"{made}.{rest}"}).encode()

        assert least_seconds(case, replace(case.delivery, body=body)) < MOST


@pytest.mark.parametrize("unit", [b";", b"\r\n", b"x", b"\r\n\r\n\xff", b'"\r\n--a\r\n', b"\r\n--a"])
def test_long_multipart_form_takes_little_more_than_itself(unit):
    [case, *_] = [each for each in captured_of("mailgun") if each.is_genuine]
    body = multipart_of(unit)
    tracemalloc.start()

    with pytest.raises(Rejected):
        case.provider.verify(replace(case.delivery, body=body), [case.secret], case.now)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 20 << 20


def test_genuine_batch_of_fifteen_thousand_events_is_read():
    event = {"id": "evt_1", "at": 1.5e-7, "data": {"object": {"lines": [{"amounts": [1, 2.5]}], "tags": []}}}
    body = json.dumps([event] * 15_000, separators=(",", ":")).encode()

    assert len(json_body(Delivery("POST", "", {}, body))) == 15_000


def test_mail_of_escapes_alone_is_read():
    text = "日本語" * 100_000

    assert parse_form("subject=" + quote_plus(text)) == {"subject": text}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a=%41%5c%22\\x41", 'A\\"\\x41'),
        ("a=100%&b=%zz%4", "100%"),
        ("a=%E2%82%AC+€", "€ €"),
        ("a=%00%7F", "\0\x7f"),
    ],
)
def test_escapes_are_decoded_as_everywhere(text, read):
    assert parse_form(text)["a"] == read
    assert dict(parse_qsl(text, keep_blank_values=True)) == parse_form(text)


def test_body_is_read_once_for_probe_secrets_and_events(monkeypatch):
    [case, *_] = [each for each in captured_of("amazon_sns") if each.is_genuine]
    read = []
    monkeypatch.setattr(
        bodies, "parse_json", lambda text, usual=bodies.parse_json: read.append(text) or usual(text)
    )
    delivery = replace(case.delivery, readings={})

    case.provider.handshake(delivery, [case.secret], keys=case.keys)
    for secrets in ([case.secret], secrets_of(case)):
        case.provider.verify(delivery, secrets, case.now, keys=case.keys)
    case.provider.events(delivery)

    assert len(read) == 1


def test_refusal_is_remembered_and_not_for_another_body():
    delivery = Delivery("POST", "", {}, b"[")

    for _ in range(2):
        with pytest.raises(Rejected, match="not JSON at character 1"):
            json_body(delivery)
    assert json_body(replace(delivery, body=b"[]")) == []
