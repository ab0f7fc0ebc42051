import pytest
from captured import CAPTURED

from providers import KeyNeeded, Rejected
from providers.kit import reading


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
        reading, "text_of", lambda body, usual=reading.text_of: decoded.append(body) or usual(body)
    )

    for case in CAPTURED:
        if case.provider.max_body is None and case.wrong:
            decoded.clear()
            ask(case, case.wrong)
            if case.delivery.body and case.delivery.body in decoded:
                pytest.fail(f"{case} reads what anybody may send: it needs MAX_BODY")
