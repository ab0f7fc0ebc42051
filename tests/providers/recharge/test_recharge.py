import json
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

import pytest

from hookonce.providers import Delivery, Reason
from hookonce.providers.kit.registry import load
from tests.support.senders import NOW, SIGNING, ids_of, reason_of, sent

BODY = {"charge": {"id": 377749210, "status": "success", "updated_at": "2026-01-01T00:00:00"}}
RAW = json.dumps(BODY).encode()


def untimed(body=RAW):
    digest = sha256(SIGNING.encode() + body).hexdigest()
    return Delivery("POST", "", {"x-recharge-hmac-sha256": digest}, body)


def test_recharge_older_signature_counts_only_where_versions_says_so():
    assert reason_of(load("recharge"), untimed()) == Reason.MISSING_HEADER
    assert reason_of(load("recharge", options={"versions": "any"}), untimed()) is None


def test_recharge_older_signature_covers_the_body():
    changed = replace(untimed(), body=b'{"charge": {"id": 1}}')

    assert reason_of(load("recharge", options={"versions": "any"}), changed) == Reason.BAD_SIGNATURE


def test_recharge_stale_time_is_not_saved_by_the_older_signature():
    provider, delivery = sent("recharge", BODY, options={"versions": "any"})
    both = replace(delivery, headers={**untimed(delivery.body).headers, **delivery.headers})

    assert reason_of(provider, both, now=NOW + timedelta(hours=49)) == Reason.STALE


def test_recharge_tells_two_topics_with_equal_bodies_apart():
    topics = [
        ids_of("recharge", BODY, **{"x-recharge-topic": topic})
        for topic in ("charge/paid", "charge/upcoming")
    ]

    assert topics[0] != topics[1]


def test_recharge_options_are_checked():
    with pytest.raises(ValueError, match="versions is 'old'"):
        load("recharge", options={"versions": "old"})
