"""`hookonce events forget-window` says how many ids it forgot, or that Redis is away."""

import pytest

from hookonce.receiver.redis.client import connect


@pytest.mark.usefixtures("inbox", "rings")
def test_window_forgets_every_event_and_nothing_else(hookonce, redis_url):
    with connect(redis_url) as client:
        client.set("hookonce:1-2-3:{stripe:evt_1}", "claimed")
        client.set("other", "stays")

        assert hookonce("events", "forget-window").err == "forgot 1 event ids\n"

        assert client.keys() == [b"other"]


@pytest.mark.usefixtures("inbox")
def test_window_is_said_to_be_reset_while_redis_is_away(hookonce, monkeypatch):
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")

    forgotten = hookonce("events", "forget-window")

    assert (forgotten.code, "the window is reset" in forgotten.err) == (0, True)
