"""What the tests against senders' own SDKs share: values to sign, and our verdict on a delivery."""

import importlib
import os
from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
T = int(NOW.timestamp())
SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
BODIES = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
IDS = st.from_regex(r"\A[A-Za-z0-9_-]{1,40}\Z")

differential = settings(max_examples=60, deadline=None)


def accepted(name, headers, body, secret, now=NOW, url=""):
    """Say whether our module of the sender takes a delivery."""
    delivery = Delivery("POST", url, {key.lower(): value for key, value in headers.items()}, body)
    try:
        load(name).verify(delivery, [secret], now)
    except Rejected:
        return False
    return True


def oracle(module):
    """Import a sender's SDK (extra `oracles`): where it is missing the test is skipped, in CI it fails."""
    return importlib.import_module(module) if os.environ.get("CI") else pytest.importorskip(module)
