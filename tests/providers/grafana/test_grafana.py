from dataclasses import replace

from hookonce.providers import Delivery, Reason
from hookonce.providers.kit.registry import load
from tests.support.senders import NOW, SIGNING, reason_of


def test_grafana_with_a_timestamp_header_wants_it_signed():
    timed, untimed = load("grafana", options={"timestamp": "X-Time"}), load("grafana")
    body = b'{"status":"firing"}'
    plain = Delivery("POST", "", untimed.sign(body, SIGNING, NOW), body)

    assert reason_of(timed, plain) == Reason.MISSING_HEADER
    assert (
        reason_of(timed, replace(plain, headers={**plain.headers, "x-time": "1767225600"}))
        == Reason.BAD_SIGNATURE
    )
