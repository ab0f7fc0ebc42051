import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load

SECRET = "token-of-tests-0123456789"


@pytest.mark.parametrize(
    ("url", "status"),
    [
        (f"?hub.mode=subscribe&hub.challenge=c&hub.verify_token={SECRET}", 200),
        ("?hub.mode=subscribe&hub.challenge=c&hub.verify_token=other", 403),
        ("?hub.mode=subscribe&hub.challenge=c", 403),
        (f"?hub.mode=unsubscribe&hub.challenge=c&hub.verify_token={SECRET}", None),
        ("", None),
    ],
)
def test_challenge_goes_back_to_who_knows_the_secret(url, status):
    reply = load("strava").handshake(Delivery("GET", "https://h.example/hooks/a" + url, {}, b""), [SECRET])

    assert (reply.status if reply else None) == status
    assert status != 200 or reply.body == b'{"hub.challenge": "c"}'
