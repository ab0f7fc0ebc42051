import socket

import pytest
from captured import CAPTURED

from providers.kit.conformance import CHECKS


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a provider opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", CAPTURED, ids=str)
def test_provider_keeps_the_contract_for_each_captured_delivery(case, check):
    check(case)
