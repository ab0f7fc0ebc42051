import json
from datetime import UTC, datetime

import pytest

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
PAYMENT = {
    "pspReference": "7914073381342284",
    "originalReference": "",
    "merchantAccountCode": "Shop",
    "merchantReference": "order:1",
    "amount": {"value": 1130, "currency": "EUR"},
    "eventCode": "AUTHORISATION",
    "success": "true",
}


def test_adyen_takes_no_payment_whose_fields_were_shifted_at_a_colon():
    adyen = load("adyen")
    body = json.dumps({"notificationItems": [{"NotificationRequestItem": PAYMENT}]}).encode()
    genuine = adyen.delivery(body, KEY, NOW)
    shifted = json.loads(genuine.body)
    shifted["notificationItems"][0]["NotificationRequestItem"] |= {
        "pspReference": "7914073381342284:",
        "originalReference": "Shop",
        "merchantAccountCode": "order",
        "merchantReference": "1",
    }

    adyen.verify(genuine, [KEY], NOW)
    with pytest.raises(Rejected, match="colon"):
        adyen.verify(Delivery("POST", "", {}, json.dumps(shifted).encode()), [KEY], NOW)
