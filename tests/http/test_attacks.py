"""Attacks at full rate, each for a moment; all there are, in plain and under TLS, are in test_all_attacks.py.

Honest senders deliver meanwhile, and probes ask; `python -m tests.soak.attacks` takes its time.
"""

import pytest

from tests.http.attacked import SECONDS, check

ATTACKS = (
    "unsigned probes",
    "readiness",
    "pipelined forgeries",
    "chunks of one byte",
    "large forged bodies",
    "half-open TLS",
)
"""In `make test`; the last one under TLS."""


@pytest.fixture(scope="module")
def plain(attacked):
    with attacked("plain") as server:
        yield server


@pytest.fixture(scope="module")
def secure(attacked):
    with attacked("tls") as server:
        yield server


@pytest.mark.parametrize("name", ATTACKS[:-1])
def test_honest_senders_are_answered_beside(plain, name):
    check(plain, name, SECONDS)


def test_honest_senders_are_answered_beside_half_open_handshakes(secure):
    check(secure, ATTACKS[-1], SECONDS)
