from base64 import b64encode
from datetime import timedelta

import pytest

from hookonce.providers import Reason
from tests.support.senders import NOW, reason_of, sent


def test_standard_webhooks_type_is_unknown_where_the_sender_gives_none():
    provider, delivery = sent("standard_webhooks", {"data": 1})

    assert provider.events(delivery)[0].type == "unknown"


@pytest.mark.parametrize("name", ["standard_webhooks", "standard-webhooks"])
def test_standard_webhooks_takes_a_tolerance(name):
    provider, delivery = sent(name, {}, options={"tolerance": 10})

    assert reason_of(provider, delivery, now=NOW + timedelta(seconds=11)) == Reason.STALE


def test_standard_webhooks_cannot_sign_with_a_public_key():
    with pytest.raises(ValueError, match="can't sign"):
        sent("standard_webhooks", {}, "whpk_" + b64encode(b"k" * 32).decode())
