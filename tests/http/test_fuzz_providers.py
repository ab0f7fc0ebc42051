"""Any headers, any body: nothing but Rejected from a provider."""

import contextlib
from functools import cache

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


@cache
def providers():
    """Each provider's name, the provider, and a secret."""
    return [(name, *fuzzed(name)) for name in registry.names()]


@settings(SHARED, max_examples=max(50, settings().max_examples // 10))
@given(
    body=bodies,
    headers=st.dictionaries(names.map(str.lower), values | wild, max_size=4),
    changed=st.none() | st.tuples(st.integers(0, 9), wild),
    query=wild,
)
def test_provider_raises_nothing_but_rejected(body, headers, changed, query):
    @for_each(providers(), named=lambda each: each[0])
    def raises_nothing_but_rejected(_name, provider, secret):
        sent = dict(headers)
        with contextlib.suppress(ValueError, Rejected):  # what cannot sign any body
            sent |= {key.lower(): value for key, value in genuine(provider, secret, body, changed).items()}
        delivery = Delivery("POST", f"https://test/hooks/x?{query}", sent, body)

        expect_only_rejected(provider.verify, delivery, [secret], NOW)
        for event in expect_only_rejected(provider.events, delivery) or []:
            assert isinstance(event.id, str)
            assert event.id
        if provider.handshake:
            expect_only_rejected(provider.handshake, delivery, [secret])

    raises_nothing_but_rejected()


def genuine(provider, secret, body, changed):
    """The headers of a signed delivery, one of them changed."""
    headers = dict(provider.delivery(body, secret, NOW).headers)
    if changed and headers:
        number, value = changed
        headers[sorted(headers)[number % len(headers)]] = value
    return headers
