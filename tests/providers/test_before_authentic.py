from dataclasses import replace

import pytest

from hookonce.providers import KeyNeeded, Rejected
from hookonce.providers.kit.reading import bodies
from tests.support.captured import captured


def ask(case, secret):
    """Have a provider look at a delivery as far as it does without knowing that it is genuine."""
    keys = {"keys": case.keys} if case.provider.takes_keys else {}
    for function, *more in ((case.provider.handshake,), (case.provider.verify, case.now)):
        if function is not None:
            try:
                function(case.delivery, [secret], *more, **keys)
            except (Rejected, KeyNeeded):
                continue


def test_what_is_read_before_it_is_authentic_is_bounded(monkeypatch):
    decoded = []
    monkeypatch.setattr(
        bodies, "text_of", lambda body, usual=bodies.text_of: decoded.append(body) or usual(body)
    )

    for case in captured():
        if case.provider.max_body is None and case.wrong:
            decoded.clear()
            unread = replace(case.delivery, readings={})  # another test may have had it read
            ask(replace(case, delivery=unread), case.wrong)
            if case.delivery.body and case.delivery.body in decoded:
                pytest.fail(f"{case} reads what anybody may send: it needs max_body")
