import hashlib
import hmac

import pytest

from hookonce.providers import Delivery, Reason
from hookonce.providers.kit.registry import load
from tests.support.senders import SIGNING, reason_of

BODY = b'{"type": "applicantReviewed"}'


@pytest.mark.parametrize("name", ["sha1", "sha256", "sha512"])
@pytest.mark.parametrize(
    "said", [{}, {"x-payload-digest-alg": "HMAC_SHA1_HEX"}, {"x-payload-digest-alg": "none"}]
)
def test_sumsub_unsigned_name_of_the_hash_decides_nothing(name, said):
    digest = hmac.new(SIGNING.encode(), BODY, getattr(hashlib, name)).hexdigest()

    assert reason_of(load("sumsub"), Delivery("POST", "", {"x-payload-digest": digest, **said}, BODY)) is None


def test_sumsub_plain_digest_without_the_key_is_refused():
    digest = hashlib.sha256(BODY).hexdigest()

    assert (
        reason_of(load("sumsub"), Delivery("POST", "", {"x-payload-digest": digest}, BODY))
        == Reason.BAD_SIGNATURE
    )
