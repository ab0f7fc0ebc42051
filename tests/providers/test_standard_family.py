"""What single senders of Standard Webhooks do besides the contract."""

from base64 import b64encode
from datetime import UTC, datetime

import pytest

from providers import Delivery, Reason, Rejected
from providers.kit.registry import load

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


def test_supabase_is_answered_with_an_empty_object():
    accepted = load("supabase_auth_hooks").accepted

    assert (accepted.status, accepted.body, accepted.content_type) == (200, b"{}", "application/json")
