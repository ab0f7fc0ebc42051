from hookonce.providers import Reason
from tests.support.senders import ids_of, reason_of, sent


def test_pusher_tells_alike_events_of_a_batch_apart():
    event = {"name": "channel_occupied", "channel": "c"}

    assert len(set(ids_of("pusher", {"time_ms": 1, "events": [event, event]}, **{"x-pusher-key": "k"}))) == 2


def test_pusher_secret_is_used_for_its_own_app_only():
    provider, delivery = sent("pusher", {"time_ms": 1, "events": []}, "k1:s")

    assert reason_of(provider, delivery, "k1:s") is None
    assert reason_of(provider, delivery, "k2:s") == Reason.BAD_SIGNATURE
    assert reason_of(provider, delivery, "s") == Reason.NO_SECRET
