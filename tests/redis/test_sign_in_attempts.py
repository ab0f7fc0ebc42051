from datetime import timedelta

from hookonce.receiver.redis import sign_in_attempts
from hookonce.receiver.redis.client import connect


def test_attempts_in_redis_are_bounded_and_forgotten_in_time(redis_url, monkeypatch):
    monkeypatch.setattr(sign_in_attempts, "MAX_NETWORKS", 3)
    interval = timedelta(seconds=5)
    with connect(redis_url) as client:
        waits = [sign_in_attempts.take(client, "192.0.2.1", 3, interval) for _ in range(5)]
        for number in range(20):
            sign_in_attempts.take(client, f"198.51.100.{number}", 3, interval)

        assert waits[:3] == [timedelta(0)] * 3
        assert all(interval - timedelta(seconds=2) < wait <= interval for wait in waits[3:])
        assert client.zcard(sign_in_attempts.KEY) == 3
        assert sign_in_attempts.take(client, "192.0.2.1", 3, interval) > timedelta(0)  # not pushed out
        assert 0 < client.pttl(sign_in_attempts.KEY) <= 3 * interval / timedelta(milliseconds=1)

        client.zadd(sign_in_attempts.KEY, {"192.0.2.1": 1})  # its time is over

        assert sign_in_attempts.take(client, "192.0.2.1", 3, interval) == timedelta(0)
