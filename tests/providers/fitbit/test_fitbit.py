import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load

FITBIT = load("fitbit")


@pytest.mark.parametrize(
    ("secrets", "code", "status"),
    [
        (["secret:code"], "code", 204),
        (["other:x", "secret:code"], "code", 204),
        (["secret:code"], "cod", 404),
        (["secret"], "", 404),
        (["secret:"], "secret", 404),
        ([], "code", 404),
        (["secret:code"], "☃", 404),
    ],
)
def test_verification_code_is_known_and_a_wrong_one_is_not(secrets, code, status):
    delivery = Delivery("GET", f"https://h.example/hooks/a?verify={code}", {}, b"")

    reply = FITBIT.handshake(delivery, secrets)

    assert (reply.status if reply else 404) == status


@pytest.mark.parametrize("secret", ["", " ", ":code", " :code"])
def test_secret_without_a_client_secret_signs_nothing(secret):
    with pytest.raises(ValueError, match="not usable"):
        FITBIT.check_secret(secret)
