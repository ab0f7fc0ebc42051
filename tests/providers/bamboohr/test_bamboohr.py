from datetime import timedelta

from hookonce.providers import Reason
from tests.support.senders import NOW, reason_of, sent

BODY = {"type": "employee.updated", "timestamp": "2026-01-31T18:42:00+0000", "data": {"employeeId": "1"}}


def test_bamboohr_attempt_signed_anew_is_the_same_event():
    (provider, first), (_, again) = (
        sent("bamboohr", BODY, now=NOW + timedelta(hours=hours)) for hours in (0, 1)
    )

    assert first.headers != again.headers
    assert provider.events(first)[0].id == provider.events(again)[0].id


def test_bamboohr_time_is_signed_behind_the_body():
    provider, delivery = sent("bamboohr", BODY)
    moved = dict(delivery.headers) | {"x-bamboohr-timestamp": str(int(NOW.timestamp()) + 1)}

    assert reason_of(provider, type(delivery)("POST", "", moved, delivery.body)) == Reason.BAD_SIGNATURE
