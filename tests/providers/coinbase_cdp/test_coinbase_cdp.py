from dataclasses import replace

import pytest

from hookonce.providers import Reason
from tests.support.captured import captured_as

HEADERS, BODY = (captured_as(f"coinbase_cdp/{name}-signed") for name in ("headers", "body"))
V0 = BODY.delivery.headers["x-hook0-signature"].partition(",")[2]


def sent(**headers):
    return replace(HEADERS.delivery, headers={**HEADERS.delivery.headers, **headers})


@pytest.mark.parametrize(
    ("delivery", "reason"),
    [
        (sent(**{"x-hook0-id": "evt_2"}), Reason.BAD_SIGNATURE),
        (replace(HEADERS.delivery, headers={k: v for k, v in HEADERS.delivery.headers.items() if k != "x-hook0-id"}),
         Reason.MISSING_HEADER),
        (sent(**{"x-hook0-signature": f"t=1767225600,v1={'0' * 64},{V0}"}), Reason.BAD_HEADER),
        (sent(**{"x-hook0-signature": f"t=1767225600,h=content-type,v1={'0' * 64},{V0}"}), Reason.BAD_SIGNATURE),
    ],
    ids=["another header", "no header", "no list", "both signatures"],
)  # fmt: skip
def test_headers_that_are_signed_count(delivery, reason):
    assert HEADERS.verdict(delivery) == reason
