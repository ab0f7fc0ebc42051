"""Vendors' own verifiers, live: what we sign as a sender they take, and once it is changed they refuse it as we do.

A verifier here is a function of what was sent and of the secret, which says whether the SDK takes it. Senders whose
SDKs sign too, or are put to more than this, are in test_oracles.py and test_oracles_that_verify.py. Left
out: what pins a library that we run with (line-bot-sdk, python-dateutil 2), what installs a package `tests` of its own,
which hides ours (paddle-python-sdk), and what is larger than 25 MB installed (elevenlabs, hubspot-api-client, openai,
squareup, telnyx, twilio). All of these have a twin on npm, which tests/vendors asks.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.registry import load, names
from tests.support import senders_page
from tests.support.for_each import for_each
from tests.support.vendor_sdks import oracle

URL = "https://in.example/hooks/s"
BODY = json.dumps({"id": "evt_1", "type": "t", "event": "t", "text": "Zoë"}, separators=(",", ":")).encode()
OCCUPIED = b'{"time_ms": %d, "events": [{"name": "a"}]}'
"""Pusher's verifier looks at the time in the body."""
WHSEC = "whsec_" + b64encode(b"k" * 32).decode()
HEX = "ab" * 32


def pem(key):
    formats = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*formats).decode()


def public_der(key):
    formats = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return b64encode(key.public_key().public_bytes(*formats)).decode()


def public_raw(key):
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


EC, ED = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()


@dataclass(frozen=True)
class Verifier:
    """An SDK's verifier of a sender's deliveries; `knows` is what verifies, if another secret signs."""

    name: str
    takes: Callable[[Delivery, str], object]
    secret: str = "a secret of 32 characters, or so"
    knows: str = ""
    body: bytes = BODY

    def __str__(self):
        return self.name


def svix(sent, secret):
    oracle("svix.webhooks").Webhook(secret).verify(sent.body, dict(sent.headers))
    return True


def sendgrid(sent, public):
    head = "x-twilio-email-event-webhook"
    verifier = oracle("sendgrid.helpers.eventwebhook").EventWebhook(public)
    return verifier.verify_signature(
        sent.body.decode(), sent.headers[f"{head}-signature"], sent.headers[f"{head}-timestamp"]
    )


def adyen(sent, secret):
    return oracle("Adyen.util").is_valid_hmac_payload(sent.headers["hmacsignature"], secret, sent.body)


def pusher(sent, secret):
    key, _, own = secret.partition(":")
    client = oracle("pusher").Pusher(app_id="1", key=key, secret=own)
    headers = sent.headers
    return client.validate_webhook(headers["x-pusher-key"], headers["x-pusher-signature"], sent.body.decode())


def resend(sent, secret):
    headers = {part: sent.headers[f"svix-{part}"] for part in ("id", "timestamp", "signature")}
    said = {"payload": sent.body.decode(), "headers": headers, "webhook_secret": secret}
    oracle("resend").Webhooks.verify(said)
    return True


def replicate(sent, secret):
    module = oracle("replicate.webhook")
    key = module.WebhookSigningSecret(key=secret)
    module.Webhooks.validate(headers=dict(sent.headers), body=sent.body.decode(), secret=key, tolerance=300)
    return True


def livekit(sent, secret):
    api = oracle("livekit.api")
    key, _, own = secret.partition(":")
    api.WebhookReceiver(api.TokenVerifier(key, own)).receive(
        sent.body.decode(), sent.headers["authorization"]
    )
    return True


def workos(sent, secret):
    client = oracle("workos").WorkOSClient(api_key="k", client_id="c")
    client.webhooks.verify_header(
        event_body=sent.body, event_signature=sent.headers["workos-signature"], secret=secret
    )
    return True


def modern_treasury(sent, secret):
    client = oracle("modern_treasury").ModernTreasury(organization_id="o", api_key="k")
    return client.webhooks.validate_signature(sent.body.decode(), dict(sent.headers), key=secret)


def lithic(sent, secret):
    oracle("lithic").Lithic(api_key="k").webhooks.verify_signature(
        sent.body, dict(sent.headers), secret=secret
    )
    return True


def polar(sent, secret):
    oracle("polar.webhooks")._verify_signature(sent.body.decode(), dict(sent.headers), secret)  # noqa: SLF001  its parser wants known types
    return True


def box(sent, secret):
    manager = oracle("box_sdk_gen.managers.webhooks").WebhooksManager
    return manager.validate_message(sent.body.decode(), dict(sent.headers), secret)


def stream(sent, secret):
    client = oracle("stream_chat").StreamChat(api_key="k", api_secret=secret)
    return client.verify_webhook(sent.body, sent.headers["x-signature"])


def increase(sent, secret):
    oracle("increase").Increase(api_key="k").events.unwrap(sent.body, headers=dict(sent.headers), key=secret)
    return True


VERIFIERS = [
    Verifier("svix", svix, WHSEC),
    Verifier("twilio_sendgrid_events", sendgrid, pem(EC), public_der(EC)),
    Verifier("twilio_sendgrid_inbound", sendgrid, pem(EC), public_der(EC)),
    Verifier("adyen", adyen, HEX),
    Verifier("pusher", pusher, "key:secret", body=OCCUPIED),
    Verifier("resend", resend, WHSEC),
    Verifier("replicate", replicate, WHSEC),
    Verifier("livekit", livekit, "key:" + "s" * 40, body=b'{"id":"EV_1","event":"room_started"}'),
    Verifier("workos", workos),
    Verifier("modern_treasury", modern_treasury),
    Verifier("lithic", lithic, WHSEC),
    Verifier("polar", polar),
    Verifier("box", box),
    Verifier("stream", stream),
    Verifier("increase", increase, WHSEC),
]


def theirs(verifier, sent):
    """Whether the SDK takes a delivery: each says no in its own way."""
    with suppress(Exception):
        return bool(verifier.takes(sent, verifier.knows or verifier.secret))
    return False


def ours(verifier, sent, now):
    with suppress(Rejected):
        load(verifier.name).verify(sent, [verifier.knows or verifier.secret], now)
        return True
    return False


@pytest.mark.parametrize("verifier", VERIFIERS, ids=str)
def test_vendors_verifier_takes_what_we_sign_and_refuses_what_is_changed(verifier):
    now = datetime.now(UTC)
    body = verifier.body.replace(b"%d", b"%d" % (now.timestamp() * 1000))
    sent = load(verifier.name).delivery(body, verifier.secret, now, url=URL)
    changed = replace(sent, body=sent.body[:-1] + b" " + sent.body[-1:])

    verifier.takes(sent, verifier.knows or verifier.secret)  # an SDK that can't be called shows nothing

    assert (theirs(verifier, sent), ours(verifier, sent, now)) == (True, True)
    assert (theirs(verifier, changed), ours(verifier, changed, now)) == (False, False)


NAMED = re.compile(r"\d+\.\d+|\w+/[\w-]+|two-items\.json")
"""A version, a repository, or another delivery here."""


@for_each(names)
def test_delivery_that_an_sdk_vouches_for_says_which(name):
    said = [facts["source"] for _, facts in senders_page.facts(name) if facts.get("evidence") == "vendor SDK"]

    assert [source for source in said if not NAMED.search(source)] == []
