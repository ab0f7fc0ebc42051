import pytest

from hookonce.receiver.redis import workers


@pytest.mark.parametrize(("url", "warnings"), [("", 0), ("redis://127.0.0.1:1", 1)])
def test_ring_that_nobody_can_hear_is_no_failure(url, warnings, caplog):
    workers.notify(url)

    assert len(caplog.records) == warnings
