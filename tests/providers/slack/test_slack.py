from dataclasses import replace
from urllib.parse import urlencode

import pytest

from tests.support.senders import SIGNING, sent


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b'{"type":"url_verification","challenge":"abc"}', b'{"challenge": "abc"}'),
        (b'{"type":"url_verification","challenge":"\\ud800"}', b'{"challenge": "\\ud800"}'),
        (b'{"type":"url_verification","challenge":1}', None),
        (b'{"type":"url_verification"}', None),
        (b'["url_verification"]', None),
        (b'{"url_verification":', None),
        (b'{"type":"event_callback","challenge":"url_verification"}', None),
        (urlencode({"ssl_check": "1", "token": "t"}).encode(), b""),
        (b"", None),
    ],
)
def test_slack_answers_signed_probes_only(body, answer):
    provider, delivery = sent("slack", body)

    reply = provider.handshake(delivery, [SIGNING])

    assert (reply.body if reply else None) == answer
    for unsigned in (replace(delivery, headers={}), replace(delivery, body=body + b" ")):
        assert provider.handshake(unsigned, [SIGNING]) is None
    assert provider.handshake(delivery, ["other"]) is None
    assert provider.handshake(delivery, []) is None
