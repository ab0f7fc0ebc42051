from dataclasses import replace

import pytest

from hookonce.providers import Reason
from tests.support.senders import NOW, reason_of, sent


@pytest.mark.parametrize(
    ("seconds", "reason"), [(0, None), (59, None), (-59, None), (61, Reason.STALE), (-61, Reason.STALE)]
)
def test_linear_goes_by_the_time_in_the_body(seconds, reason):
    at = int((NOW.timestamp() - seconds) * 1000)
    provider, delivery = sent("linear", {"type": "Issue", "action": "create", "webhookTimestamp": at})
    lying = replace(
        delivery, headers={**delivery.headers, "linear-timestamp": str(int(NOW.timestamp() * 1000))}
    )

    assert reason_of(provider, lying) == reason
