"""Every attack there is, in plain and under TLS."""

import pytest

from tests.http.attacked import LONG, check
from tests.support.attacks.flood import ATTACKS


@pytest.fixture(scope="module", params=["plain", "tls"])
def server(request, attacked):
    with attacked(request.param) as server:
        yield server


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "nobody"])
def test_honest_senders_are_answered_beside_every_attack(server, name):
    check(server, name, LONG)
