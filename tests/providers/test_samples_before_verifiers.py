"""Every sample that `hookonce trigger` sends, put before the vendor's own verifier."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hookonce.providers.kit.registry import load, names
from hookonce.providers.kit.schemes.standard_webhooks import StandardWebhooks
from hookonce.receiver.samples import documents, files
from tests.providers.test_vendor_verifiers import URL, VERIFIERS, WHSEC, Verifier, theirs
from tests.support.for_each import for_each
from tests.support.vendor_sdks import oracle


def stripe(sent, secret):
    signed = sent.headers["stripe-signature"]
    return oracle("stripe").WebhookSignature.verify_header(sent.body.decode(), signed, secret, tolerance=300)


def github(sent, secret):
    return oracle("gidgethub.sansio").Event.from_http(sent.headers, sent.body, secret=secret)


def slack(sent, secret):
    verifier = oracle("slack_sdk.signature").SignatureVerifier(secret)
    return verifier.is_valid_request(sent.body, dict(sent.headers))


def razorpay(sent, secret):
    utility = oracle("razorpay").Client(auth=("key", secret)).utility
    utility.verify_webhook_signature(sent.body.decode(), sent.headers["x-razorpay-signature"], secret)
    return True


def gocardless(sent, secret):
    oracle("gocardless_pro.webhooks").parse(sent.body.decode(), secret, sent.headers["webhook-signature"])
    return True


def standard(sent, secret):
    headers = {name.replace("svix-", "webhook-"): value for name, value in sent.headers.items()}
    oracle("standardwebhooks.webhooks").Webhook(secret).verify(sent.body.decode(), headers)
    return True


def adyen(sent, secret):
    items = json.loads(sent.body).get("notificationItems")
    if not items:
        return SIGNED["adyen"].takes(sent, secret)
    return oracle("Adyen.util").is_valid_hmac_notification(items[0]["NotificationRequestItem"], secret)


SIGNED = {verifier.name: verifier for verifier in VERIFIERS}
ALSO = [
    Verifier("stripe", stripe),
    Verifier("github", github),
    Verifier("slack", slack),
    Verifier("razorpay", razorpay),
    Verifier("gocardless", gocardless),
]
KNOWN = {
    **SIGNED,
    **{verifier.name: verifier for verifier in ALSO},
    "adyen": replace(SIGNED["adyen"], takes=adyen),
}
OF_THE_FAMILY = [
    name
    for name in names()
    if name not in {"hmac", "jwt", "signed", "token", "adobe_sign", *KNOWN}
    and isinstance(scheme := load(name).scheme, StandardWebhooks)
    and scheme.secret == "whsec"
    and scheme.vendors[0] in {"webhook", "svix"}
]


def samples(verifier):
    """Each sample, sent now; without samples what is made up."""
    now = datetime.now(UTC)
    for kind in files.types(verifier.name) or [None]:
        document = documents.fresh(load(verifier.name), kind, now)
        yield kind, document.delivery(verifier.secret, now, URL)


@pytest.mark.parametrize("verifier", KNOWN.values(), ids=str)
def test_vendors_verifier_takes_every_sample(verifier):
    told = {kind: verifier.takes(sent, verifier.knows or verifier.secret) for kind, sent in samples(verifier)}

    assert {kind for kind, is_taken in told.items() if not is_taken} == set()


@pytest.mark.parametrize("kind", files.types("github"))
def test_older_signature_of_github_is_right_too(kind):
    now = datetime.now(UTC)
    sent = documents.fresh(load("github"), kind, now).delivery("a secret", now, URL)
    sansio = oracle("gidgethub.sansio")

    sansio.validate_event(sent.body, signature=sent.headers["x-hub-signature"], secret="a secret")
    with pytest.raises(sansio.ValidationFailure):
        sansio.validate_event(sent.body + b" ", signature=sent.headers["x-hub-signature"], secret="a secret")


@for_each(OF_THE_FAMILY)
def test_verifier_of_standard_webhooks_takes_every_sample(name):
    verifier = Verifier(name, standard, WHSEC)

    assert [kind for kind, sent in samples(verifier) if not theirs(verifier, sent)] == []
    assert len(OF_THE_FAMILY) >= 14
