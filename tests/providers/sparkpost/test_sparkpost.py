import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from tests.support.senders import ids_of

PING = b'[{"msys": {}}]'
HEADERS = {"authorization": "Basic dXNlcjpwYXNzd29yZA=="}


def probe(body, headers, method="POST"):
    return load("sparkpost").handshake(Delivery(method, "", headers, body), ["user:password"])


@pytest.mark.parametrize(
    ("body", "headers", "method"),
    [
        (PING, {}, "POST"),
        (PING, HEADERS, "GET"),
        (b'[{"msys": {"message_event": {}}}]', HEADERS, "POST"),
        (b"[", HEADERS, "POST"),
    ],
)
def test_sparkpost_what_is_no_ping_gets_no_answer(body, headers, method):
    assert probe(PING, HEADERS) is not None
    assert probe(body, headers, method) is None


def test_sparkpost_inbound_mail_is_known_by_its_contents():
    mails = [
        [{"msys": {"relay_message": {"rcpt_to": "a@b.c", "content": {"text": text}}}}] for text in ("1", "2")
    ]

    assert ids_of("sparkpost", mails[0]) != ids_of("sparkpost", mails[1])
