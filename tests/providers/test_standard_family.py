"""What single senders of Standard Webhooks do besides the contract."""

from base64 import b64encode
from datetime import UTC, datetime

import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = (b64encode(bytes([number]) * 24).decode() for number in (1, 2))


def reason_of(name, delivery, secrets):
    try:
        load(name).verify(delivery, secrets, NOW)
    except Rejected as error:
        return error.reason
    return None


@pytest.mark.parametrize(
    ("name", "signs", "configured", "reason"),
    [
        ("supabase_auth_hooks", f"v1,whsec_{ONE}", f"v1,whsec_{TWO}|v1,whsec_{ONE}", None),
        ("supabase_auth_hooks", f"v1,whsec_{ONE}", f"whsec_{ONE}", None),
        ("supabase_auth_hooks", f"v1,whsec_{ONE}", f"v1,whsec_{TWO}", Reason.BAD_SIGNATURE),
        ("openai", "text", "text", None),
        ("openai", ONE, f"whsec_{ONE}", Reason.BAD_SIGNATURE),
        ("polar", ONE, ONE, None),
        ("polar", f"whsec_{b64encode(ONE.encode()).decode()}", ONE, Reason.BAD_SIGNATURE),
        ("bigcommerce", ONE, f"whsec_{ONE}", Reason.BAD_SIGNATURE),
        ("brex", f"whsec_{ONE}", ONE, None),
        ("liveblocks", f"whsec_{ONE}", f"whsec_{ONE}A", None),
    ],
)
def test_sender_reads_its_secrets_as_its_sdk_does(name, signs, configured, reason):
    body = b'{"type":"a"}'
    delivery = Delivery("POST", "", load(name).sign(body, signs, NOW), body)

    assert reason_of(name, delivery, [configured]) == reason


@pytest.mark.parametrize("name", ["svix", "clerk", "supabase_auth_hooks", "lithic", "render"])
def test_secret_that_cannot_be_decoded_is_refused_when_configured(name):
    with pytest.raises(ValueError, match="whsec_"):
        load(name).check_secret("sk_live_not!base64")


@pytest.mark.parametrize(
    ("name", "signs", "beside"), [("svix", "svix", "webhook"), ("brex", "webhook", "svix")]
)
def test_id_is_the_signed_one_whatever_stands_beside_it(name, signs, beside):
    signed = load(name).sign(b'{"type":"a"}', f"whsec_{ONE}", NOW, event_id="signed")
    delivery = Delivery("POST", "", {f"{beside}-id": "anybody's", **signed}, b'{"type":"a"}')

    assert reason_of(name, delivery, [f"whsec_{ONE}"]) is None
    assert f"{signs}-id" in signed
    assert load(name).events(delivery)[0].id == "signed"


def test_id_is_found_in_a_stored_delivery_that_has_lost_its_signature():
    delivery = Delivery("POST", "", {"webhook-id": "stored"}, b'{"type":"a"}')

    assert load("svix").events(delivery)[0].id == "stored"


def test_generic_id_is_the_signed_one_too():
    provider = load("standard_webhooks")
    signed = provider.sign(b"{}", f"whsec_{ONE}", NOW, event_id="signed")
    as_svix = {name.replace("webhook", "svix"): value for name, value in signed.items()}

    assert provider.events(Delivery("POST", "", as_svix, b"{}"))[0].id == "signed"
    with_other = Delivery("POST", "", {"webhook-id": "anybody's", **as_svix}, b"{}")
    assert provider.events(with_other)[0].id == "signed"
