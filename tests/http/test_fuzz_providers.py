"""Any headers, any body: nothing but Rejected from a provider."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from hookonce.providers import Delivery, KeyNeeded, Rejected
from hookonce.providers.kit import registry
from tests.http.test_fuzz import NOW, SHARED, bodies, names, values, wild
from tests.support.for_each import for_each
from tests.support.senders_page import provider_of


def fuzzed(name):
    """A provider, and a secret that it takes."""
    provider = provider_of(name)
    for secret in ("whsec_" + "c2VjcmV0" * 4, "c2VjcmV0" * 4, "73656372" * 8):
        with contextlib.suppress(ValueError):
            if provider.check_secret:
                provider.check_secret(secret)
            return provider, secret
    return provider, "no secret of this sender's"


def expect_only_rejected(call, *arguments):
    try:
        return call(*arguments)
    except (Rejected, KeyNeeded):
        return None


@for_each(registry.names())
def test_provider_raises_nothing_but_rejected(name):
    raises_nothing_but_rejected(name)


@settings(SHARED, max_examples=max(10, settings().max_examples // 10))
@given(data=st.data())
def raises_nothing_but_rejected(name, data):
    provider, secret = fuzzed(name)
    body = data.draw(bodies)
    headers = data.draw(st.dictionaries(names.map(str.lower), values | wild, max_size=4))
    with contextlib.suppress(ValueError, Rejected):  # what cannot sign any body
        genuine = provider.delivery(body, secret, NOW)
        changed = data.draw(
            st.dictionaries(st.sampled_from(sorted(genuine.headers) or ["a"]), wild, max_size=1)
        )
        headers |= {key.lower(): value for key, value in {**genuine.headers, **changed}.items()}
    delivery = Delivery("POST", "https://test/hooks/x?" + data.draw(wild), headers, body)

    expect_only_rejected(provider.verify, delivery, [secret], NOW)
    for event in expect_only_rejected(provider.events, delivery) or []:
        assert isinstance(event.id, str)
        assert event.id
    if provider.handshake:
        expect_only_rejected(provider.handshake, delivery, [secret])
