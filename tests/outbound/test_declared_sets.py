"""Sets of keys that a source declares, fetched by the receiver: how often, and what a stranger can make of it."""

import json

import pytest
import responses

from hookonce.providers import Rejected
from hookonce.providers.kit.conformance.cases import cases
from hookonce.receiver.outbound.key_fetcher import KeyFetcher, KeyUnavailable
from hookonce.receiver.source import Source
from tests.support.captured import DELIVERIES

URL = "https://acme.example/jwks.json"


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def web():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture(
    params=["signed/ed25519-fetched-set", "signed/ed25519-fetched-set-without-key-id", "jwt/body-fetched-set"]
)
def case(request):
    folder = request.param.partition("/")[0]
    return next(each for each in cases(DELIVERIES / folder) if each.name == request.param)


def verdict(fetcher, case, delivery=None):
    source = Source("acme", case.provider, ())
    try:
        fetcher.call_with_keys(source, case.provider.verify, delivery or case.delivery, (), case.now)
    except (Rejected, KeyUnavailable) as error:
        return type(error).__name__
    return "genuine"


def set_without(case):
    """A set of the sender's that lacks the key, as before a rotation."""
    key = json.loads(case.keys[URL])["keys"][0] | {"kid": "k0", "x": "A" * 42 + "E"}
    return json.dumps({"keys": [key]})


def test_declared_set_is_fetched_once_for_many_deliveries(web, case):
    web.get(URL, body=case.keys[URL])
    fetcher = KeyFetcher(Clock())

    assert [verdict(fetcher, case) for _ in range(20)] == ["genuine"] * 20
    assert len(web.calls) == 1


def test_rotated_key_is_found_by_fetching_the_set_anew(web, case):
    clock = Clock()
    fetcher = KeyFetcher(clock)
    web.get(URL, body=set_without(case))
    assert verdict(fetcher, case) == "Rejected"

    web.upsert(responses.GET, URL, body=case.keys[URL])
    clock.now += 61

    assert verdict(fetcher, case) == "genuine"


def test_deliveries_that_name_unknown_keys_cost_one_fetch_a_minute(web, case):
    clock = Clock()
    fetcher = KeyFetcher(clock)
    web.get(URL, body=set_without(case))

    for _ in range(3):
        assert {verdict(fetcher, case) for _ in range(50)} == {"Rejected"}
        clock.now += 61

    assert len(web.calls) == 3


def test_set_that_can_not_be_had_is_our_trouble_and_no_verdict(web, case):
    web.get(URL, status=500)

    assert verdict(KeyFetcher(Clock()), case) == "KeyUnavailable"
