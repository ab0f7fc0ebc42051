from datetime import timedelta

import pytest

from hookonce.providers import Reason
from hookonce.providers.kit.registry import load
from tests.support.senders import NOW, reason_of, sent


def test_paddle_tolerance_is_an_option():
    provider, delivery = sent("paddle_billing", {"event_id": "e"}, options={"tolerance": 60})

    assert provider.tolerance == timedelta(seconds=60)
    assert reason_of(provider, delivery, now=NOW + timedelta(seconds=59)) is None
    assert reason_of(load("paddle_billing"), delivery, now=NOW + timedelta(seconds=6)) == Reason.STALE


@pytest.mark.parametrize("options", [{"tolerance": 0}, {"tolerence": 5}])
def test_paddle_refuses_options_that_it_does_not_know(options):
    with pytest.raises(ValueError, match="paddle_billing: "):
        load("paddle_billing", options=options)
