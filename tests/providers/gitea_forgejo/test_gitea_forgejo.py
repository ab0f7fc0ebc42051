from dataclasses import replace
from urllib.parse import urlencode

import pytest

from hookonce.providers import Reason
from tests.support.senders import reason_of, sent


@pytest.mark.parametrize(
    ("body", "form", "reason"),
    [
        (b'{"a":1}', False, None),
        (urlencode({"payload": '{"a":1}'}).encode(), True, None),
        (urlencode({"payload": '{"a":2}'}).encode(), True, Reason.BAD_SIGNATURE),
        (urlencode({"payload": '{"a":1}'}).encode(), False, Reason.BAD_SIGNATURE),
        (b"x=1", True, Reason.BAD_SIGNATURE),
    ],
)
def test_gitea_signs_the_json_in_a_form(body, form, reason):
    provider, delivery = sent("gitea_forgejo", b'{"a":1}')
    kind = "application/x-www-form-urlencoded" if form else "application/json"
    headers = {**delivery.headers, "content-type": kind}

    assert reason_of(provider, replace(delivery, headers=headers, body=body)) == reason
