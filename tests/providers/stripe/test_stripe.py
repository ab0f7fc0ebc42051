import pytest

from hookonce.providers.kit.registry import load


@pytest.mark.parametrize("secret", ["sk_live_123", "pk_test_1", "rk_live_1", "", " "])
def test_stripe_refuses_secrets_that_are_api_keys(secret):
    with pytest.raises(ValueError, match="the secret is"):
        load("stripe").check_secret(secret)
