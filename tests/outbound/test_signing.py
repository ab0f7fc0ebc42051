"""Deliveries of every sender, stored and signed anew with another secret."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.registry import load, names
from hookonce.receiver.dev.generated_secrets import made_up
from hookonce.receiver.intake.new_events import new_event
from hookonce.receiver.outbound.signing import EventName, NotSigned, signed_anew
from hookonce.receiver.privacy.masking import kept_headers
from hookonce.receiver.samples import documents
from hookonce.receiver.source import Source

URL = "http://localhost:3000/hook"
NOW = datetime.now(UTC)
THEN = NOW - timedelta(hours=8)
OPTIONS = {"adobe_sign", "hmac", "jwt", "signed", "token"}
"""They are what a source's options make of them."""
ALONE = {"amazon_sns", "apple_app_store", "google_chat", "google_pubsub", "plaid"} | {
    "bot_framework",
    "ebay",
    "fal_ai",
    "mailchannels",
    "paypal",
    "wechat_pay",
}
"""They sign with keys that they alone have."""
IN_BODY = {"braintree", "figma", "kinde", "ko_fi", "lever", "mailgun", "paddle_classic"} | {
    "dropbox_sign",
    "midtrans",
    "wix",
}
"""Their signature is in the body, which is another one then."""
BY_TIME = {"ghost", "hygraph", "webflow", "pusher", "ably", "smartsheet"}
"""The id holds the signed time, or what the body of a batch says besides its events."""
CUT = {"salesforce"}
"""Of its batches no body of one event can be made."""


def kept(name):
    """A source, and what is kept of the first event of a sample that its sender sent hours ago."""
    provider = load(name)
    source = Source("s", provider, (made_up(provider) or "",))
    sent = documents.fresh(provider, None, THEN).delivery(
        source.secrets[0], THEN, "https://in.example/hooks/s"
    )
    decoded = provider.decode(sent, source.secrets) if provider.decode else sent
    event = provider.events(decoded)[0]
    headers = kept_headers(dict(decoded.headers), source)
    return source, event, new_event(source, decoded, event, json.dumps(headers), THEN)


@pytest.mark.parametrize("name", sorted(set(names()) - OPTIONS - ALONE - {"mollie"}))
def test_stored_delivery_is_signed_anew_as_its_sender_would(name):
    source, event, row = kept(name)
    provider, secret = source.provider, made_up(source.provider) or ""
    stored = Delivery("POST", URL, json.loads(row.headers), row.body)
    called = EventName(row.event_id, row.type)

    if name in CUT:
        with pytest.raises(NotSigned):
            signed_anew(provider, secret, stored, called, NOW, is_element=row.is_element)
        return
    signed = signed_anew(provider, secret, stored, called, NOW, is_element=row.is_element)

    if name != "linear":  # its time is in the body, and old
        provider.verify(signed, [secret], NOW)
    (again,) = provider.events(provider.decode(signed, [secret]) if provider.decode else signed)
    assert (again.id == event.id) is (name not in BY_TIME | (IN_BODY & {"dropbox_sign", "midtrans", "wix"}))
    assert (signed.body == row.body) is (name not in IN_BODY and not (row.is_element and provider.batch))
    assert "[secret]" not in "".join(signed.headers.values())


@pytest.mark.parametrize("name", sorted(ALONE))
def test_sender_with_keys_of_its_own_is_not_signed_for(name):
    provider = load(name)
    secret = made_up(provider)

    assert secret is None or not is_signable(provider, secret)


def is_signable(provider, secret):
    try:
        signed_anew(provider, secret, Delivery("POST", URL, {}, b'{"id":"e"}'), EventName("e", "t"), NOW)
    except (NotSigned, Rejected):
        return False
    return True


def test_headers_of_the_connection_that_it_came_by_are_left_out():
    connection = {"connection": "upgrade", "upgrade": "h2c", "http2-settings": "AAMAAABk", "te": "trailers"}
    connection |= {"trailer": "x", "keep-alive": "timeout=5", "proxy-connection": "keep-alive"}
    stored = Delivery(
        "POST", URL, connection | {"x-shop": "7"}, b'{"id":"evt_1","object":"event","type":"a"}'
    )

    signed = signed_anew(load("stripe"), made_up(load("stripe")), stored, EventName("evt_1", "a"), NOW)

    assert not signed.headers.keys() & connection.keys()
    assert signed.headers["x-shop"] == "7"
