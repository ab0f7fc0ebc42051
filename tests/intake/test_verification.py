from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.registry import load
from hookonce.receiver.intake.verification import verify_and_find_secret
from hookonce.receiver.outbound.key_fetcher import KeyUnavailable
from hookonce.receiver.source import Source

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BODY = b'{"id": "evt_1", "type": "a"}'


class Verifier:
    """A provider's `verify` bound to one delivery; remembers which secrets it was asked with."""

    def __init__(self, name, secret, at=NOW):
        self._provider = load(name)
        self._delivery = Delivery("POST", "", self._provider.sign(BODY, secret, at), BODY)
        self.asked = []

    def __call__(self, secrets):
        self.asked.append(tuple(secrets))
        self._provider.verify(self._delivery, secrets, NOW)


@pytest.mark.parametrize(
    ("secrets", "slot", "asked"),
    [
        (("new",), 1, [("new",)]),
        (("new", "old"), 1, [("new",)]),
        (("old", "new"), 2, [("old",), ("new",)]),
        (("a", "b", "new"), 3, [("a",), ("b",), ("new",)]),
    ],
)
@pytest.mark.parametrize("name", ["stripe", "github"])
def test_slot_is_found_with_no_more_signatures_than_needed(name, secrets, slot, asked):
    verify = Verifier(name, "new")

    assert verify_and_find_secret(verify, secrets) == slot
    assert verify.asked == asked


@pytest.mark.parametrize(
    ("secrets", "at", "reason"),
    [
        (("a", "b"), NOW, Reason.BAD_SIGNATURE),
        (("a", "new"), NOW.replace(year=2025), Reason.STALE),
        (("new", "a"), NOW.replace(year=2025), Reason.STALE),
        ((), NOW, Reason.NO_SECRET),
    ],
)
def test_refusal_has_the_reason_that_all_secrets_give(secrets, at, reason):
    verify = Verifier("stripe", "new", at)

    with pytest.raises(Rejected) as error:
        verify_and_find_secret(verify, secrets)

    assert error.value.reason == reason
    assert verify.asked[-1] == secrets


def test_secrets_that_verify_only_together_are_enough_and_not_counted():
    def verify(secrets):
        if set(secrets) != {"one", "other"}:
            raise Rejected(Reason.BAD_SIGNATURE, "half of it")

    assert verify_and_find_secret(verify, ("one", "other")) is None


def test_receiver_counts_the_slot_and_metrics_show_it(receiver):
    receiver.add("stripe", load("stripe"), "new", "old")
    provider = load("stripe")
    for number, secret in enumerate(("old", "new", "old", "forged")):
        body = b'{"id": "evt_%d", "type": "a"}' % number
        headers = provider.sign(body, secret, receiver.now)
        receiver.send("stripe", Delivery("POST", "", headers, body))
    receiver.app.extensions["hookonce"].background_writer.close()

    counted = receiver.query("SELECT slot, count FROM hookonce.secret_use ORDER BY slot")
    page = receiver.app.test_client().get("/metrics").text

    assert counted == [(1, 1), (2, 2)]
    assert 'hookonce_secret_used_total{slot="2",source="stripe"} 2.0' in page


def test_secret_whose_key_can_not_be_fetched_keeps_no_other_from_verifying():
    def verify(secrets):
        if secrets[0] == "away":
            raise KeyUnavailable("no answer")

    assert verify_and_find_secret(verify, ("away", "here")) == 2


SLOW, TOLERANT = timedelta(seconds=30), timedelta(days=1)


@pytest.mark.parametrize(
    ("tolerance", "age", "code"),
    [
        (TOLERANT, timedelta(hours=23), None),
        (TOLERANT, timedelta(hours=25), "stale"),
        (TOLERANT, timedelta(hours=-1), "stale"),
        (SLOW, timedelta(seconds=20), None),
        (SLOW, timedelta(seconds=40), "stale"),
        (SLOW, timedelta(minutes=10), "stale"),
        (None, timedelta(minutes=4), None),
        (None, timedelta(minutes=6), "stale"),
    ],
)
@pytest.mark.parametrize("name", ["stripe", "slack", "standard_webhooks"])
def test_tolerance_of_a_source_counts_in_place_of_its_senders(receiver, name, tolerance, age, code):
    provider = load(name)
    secret = "whsec_" + "c2VjcmV0" * 4
    receiver.add("a", provider, secret, tolerance=tolerance)

    sent = provider.delivery(BODY, secret, receiver.now - age)

    assert receiver.send("a", sent).json.get("code") == code


def test_forged_delivery_is_as_forged_within_a_wide_tolerance(receiver):
    receiver.add("stripe", load("stripe"), "new", tolerance=TOLERANT)

    forged = load("stripe").delivery(BODY, "another", receiver.now - timedelta(hours=1))

    assert receiver.send("stripe", forged).json["code"] == "bad_signature"


@pytest.mark.parametrize(
    ("name", "of_source", "limit"),
    [
        ("stripe", None, 25 << 20),
        ("mandrill", None, 25 << 20),
        ("postmark", None, 50 << 20),
        ("stripe", 2000, 2000),
    ],
)
def test_largest_body_is_the_sources_else_its_senders_else_the_receivers(name, of_source, limit):
    assert Source("a", load(name), (), max_body=of_source).body_limit(25 << 20) == limit
