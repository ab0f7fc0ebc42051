import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load

TOKEN = "6590f590-3dba-495e-9bea-c361e1e2efc0"
PROBE = b'{"verification_token": "%b"}' % TOKEN.encode()


def probe(body, secrets=(), **headers):
    return load("gusto").handshake(Delivery("POST", "", headers, body), list(secrets))


def test_gusto_token_that_is_handed_out_is_said_once():
    assert probe(PROBE).secret == TOKEN
    assert probe(PROBE, [TOKEN]).secret is None
    assert probe(PROBE).body == b""


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (PROBE, {"x-gusto-signature": "0" * 64}),
        (b'{"verification_token": 1}', {}),
        (b'{"verification_token": "short"}', {}),
        (b'{"verification_token": "%b", "event_type": "company.updated"}' % TOKEN.encode(), {}),
        (b"verification_token", {}),
    ],
)
def test_gusto_what_is_no_probe_gets_no_answer(body, headers):
    assert probe(body, **headers) is None
