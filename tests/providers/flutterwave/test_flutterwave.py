from dataclasses import replace

from hookonce.providers import Reason
from tests.support.captured import captured_as

V3, V4 = (captured_as(f"flutterwave/{name}-charge") for name in ("v3", "v4"))


def test_signature_counts_where_it_is_though_the_secret_comes_along():
    both = replace(V4.delivery, headers={**V4.delivery.headers, "verif-hash": V4.secret}, body=b"{}")

    assert V4.verdict(both) == Reason.BAD_SIGNATURE


def test_statuses_of_one_transaction_are_events_of_their_own():
    failed = replace(V3.delivery, body=V3.delivery.body.replace(b'"successful"', b'"failed"'))

    assert V3.events(failed)[0].id != V3.events(V3.delivery)[0].id
