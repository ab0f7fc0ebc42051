from base64 import b64encode

from hookonce.providers import Delivery, Reason
from hookonce.providers.kit import Hmac, Timestamp
from tests.support.senders import NOW, reason_of, sent

BODY = {"id": "evt_1", "resourceType": "transaction", "operationType": "update"}
PLAIN = "a secret that is not base64!"


def test_mercury_secret_that_is_no_base64_signs_as_text():
    provider, delivery = sent("mercury", BODY, PLAIN)

    assert reason_of(provider, delivery, PLAIN) is None
    assert reason_of(provider, delivery, PLAIN + "x") == Reason.BAD_SIGNATURE


def test_mercury_takes_what_the_decoded_secret_signed_beside_one_that_is_plain():
    secret = b64encode(b"k" * 32).decode()
    scheme = Hmac(
        header="mercury-signature",
        key="v1",
        signed="{timestamp}.{body}",
        timestamp=Timestamp(key="t"),
        secret="base64",
    )
    provider, plain = sent("mercury", BODY, secret)
    headers = scheme.sign(plain.body, secret, NOW)

    assert reason_of(provider, Delivery("POST", "", headers, plain.body), PLAIN, secret) is None
    assert reason_of(provider, Delivery("POST", "", headers, plain.body), PLAIN) == Reason.BAD_SIGNATURE
