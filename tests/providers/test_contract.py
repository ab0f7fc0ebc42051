import socket
from pathlib import Path

import pytest

from providers.kit.conformance import CHECKS, cases

FOLDERS = [folder for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]
CASES = [case for folder in FOLDERS for case in cases(folder)]


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a provider opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_provider_keeps_the_contract_for_each_captured_delivery(case, check):
    check(case)
