from dataclasses import replace

import pytest

from hookonce.providers import Reason
from tests.support.senders import reason_of, sent


@pytest.mark.parametrize("sign_as", ["standard", "older"])
def test_increase_secret_is_decoded_for_the_newer_signature_only(sign_as):
    secret = "whsec_" + "QUJDRA" * 4
    provider, delivery = sent("increase", {"id": "e"}, secret)
    if sign_as == "older":
        delivery = replace(delivery, headers={key: delivery.headers[key] for key in ("content-type",)})

    assert reason_of(provider, delivery, secret) == (None if sign_as == "standard" else Reason.MISSING_HEADER)
