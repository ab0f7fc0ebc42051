"""Deliveries under a Content-Encoding: verified as their sender signs, kept as they came, and read as text."""

import gzip
import json
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.encryption import OFF
from hookonce.receiver.intake.explain.proof import proof
from hookonce.receiver.ledger.queries import event_details
from tests.ledger.test_body_search import search
from tests.support.senders import SIGNING as SECRET

TOKEN = 'token = { in = "header:X-Sig", id = "$.id", type = "$.type" }'
PACK = {"gzip": partial(gzip.compress, mtime=0), "deflate": zlib.compress}
PLACES = {"header": "X-Sig", "id": "$.id", "type": "$.type"}


def text(event_id="evt_1", **more):
    return json.dumps({"id": event_id, "type": "a", "card": "4242"} | more).encode()


def send(shop, body, coding="gzip", *, signed=None, packed=None):
    """Send a body compressed, signed as the source's sender would sign `signed`; give the answer."""
    packed = PACK[coding](body) if packed is None else packed
    made = shop.source.provider.delivery(signed or packed, SECRET, datetime.now(UTC))
    headers = {**made.headers, "content-encoding": coding}
    return shop.app.test_client(use_cookies=False).post("/hooks/shop", data=packed, headers=headers)


def kept(shop):
    return shop.rows("SELECT b.headers ->> 'content-encoding', b.body FROM hookonce.bodies b ORDER BY event")


@pytest.mark.parametrize("coding", PACK)
def test_body_is_signed_as_it_is_sent_unless_its_sender_says_otherwise(open_sources, coding):
    shop = open_sources()
    body, packed = text(), PACK[coding](text())

    assert send(shop, body, coding, signed=body).status_code == 401
    assert send(shop, body, coding, signed=packed).status_code == 200
    assert kept(shop) == [(coding, packed)]


@pytest.mark.parametrize("coding", PACK)
@pytest.mark.parametrize("provider", ["token", "stream"])
def test_text_is_read_of_a_sender_that_signs_it_or_nothing(open_sources, provider, coding):
    shop = open_sources(TOKEN if provider == "token" else "", provider=provider)

    answer = send(shop, text(), coding, signed=text())

    assert answer.status_code == 200
    assert kept(shop) == [(coding, PACK[coding](text()))]


@pytest.mark.parametrize("name", ["hmac", "signed", "jwt"])
def test_declared_source_says_that_the_text_is_signed(name):
    options = {
        "hmac": PLACES,
        "signed": PLACES | {"algorithm": "ed25519"},
        "jwt": {"in": "bearer", "algorithms": ["HS256"], "body_hash": "h", "id": "$.id", "type": "$.type"},
    }[name]

    assert not load(name, options=options).verifies_text
    assert load(name, options=options | {"signs_text": True}).verifies_text


def test_form_whose_fields_are_signed_is_inflated_first():
    assert load("hmac", options=PLACES | {"signed": "{url}{params}"}).verifies_text
    assert load("mandrill").verifies_text


def test_same_text_compressed_otherwise_is_a_duplicate(open_sources):
    shop = open_sources()
    ways = [("gzip", gzip.compress(text(), 1)), ("gzip", gzip.compress(text(), 9)), ("deflate", None)]

    statuses = [send(shop, text(), coding, packed=packed).json["status"] for coding, packed in ways]

    assert statuses == ["accepted", "duplicate", "duplicate"]
    assert shop.status(text()) == "duplicate"


@pytest.mark.parametrize("coding", PACK)
def test_handler_search_and_page_have_the_text(open_sources, coding):
    shop, seen = open_sources(), []
    shop.on(
        lambda event, _: seen.append((event.data["card"], event.raw, "content-encoding" in event.headers))
    )
    send(shop, text(), coding)
    shop.work()

    [[number]] = shop.rows("SELECT id FROM hookonce.events")
    body = event_details.detail(shop.ledger, number, OFF).with_content().body
    assert seen == [("4242", text(), False)]
    assert [row.id for row in search(shop.ledger, "4242").rows] == [number]
    assert (body.body, body.sent, body.coding) == (text(), PACK[coding](text()), coding)


@pytest.mark.parametrize("signs_text", [False, True])
def test_proof_of_a_compressed_delivery_holds_afterwards(open_sources, signs_text):
    shop = open_sources()
    provider = load("hmac", options=PLACES | {"signs_text": signs_text})
    source = shop.settings.sources["shop"] = replace(shop.source, provider=provider)
    send(shop, text(), signed=text() if signs_text else None)
    [[number]] = shop.rows("SELECT id FROM hookonce.events")

    found = event_details.detail(shop.ledger, number, OFF).with_content()

    assert proof(source, found.event.received_at, found.body).secret == "env:SHOP_SECRET"


def test_redacted_body_is_kept_as_its_text(open_sources):
    shop = open_sources('redact = ["$.card"]')

    send(shop, text())

    assert kept(shop) == [(None, b'{"id":"evt_1","type":"a","card":"[redacted]"}')]


def test_element_of_a_batch_is_kept_as_its_text(open_sources):
    shop = open_sources(TOKEN.replace("in =", 'items = "$", in ='), provider="token")

    send(shop, b"[" + text("1") + b"," + text("2") + b"]", signed=b"[]")

    assert kept(shop) == [(None, text("1")), (None, text("2"))]


def test_other_body_of_a_known_id_is_shown_as_its_text(open_sources):
    shop = open_sources()
    shop.status(text())
    send(shop, text(card="1111"))

    [[number]] = shop.rows("SELECT id FROM hookonce.events")
    [conflict] = event_details.detail(shop.ledger, number, OFF).with_content().conflicts

    assert conflict.octets == text(card="1111")


def test_refused_compressed_body_leaves_nothing_that_could_not_be_masked(open_sources):
    shop = open_sources(TOKEN.replace("header:X-Sig", "$.key"), provider="token")
    send(shop, text(key=SECRET + "x"), signed=b'{"key":"x"}')

    shop.intake.background_writer.close()

    assert shop.rows("SELECT body_prefix FROM hookonce.rejected") == [(b"",)]


def test_bomb_under_a_right_signature_is_refused(open_sources):
    shop = open_sources()

    answer = send(shop, b"", packed=gzip.compress(bytes(1 << 25)))

    assert (answer.status_code, shop.rows("SELECT 1 FROM hookonce.events")) == (413, [])
