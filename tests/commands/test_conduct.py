import pytest

from hookonce.receiver.commands import conduct
from hookonce.receiver.commands.conduct import Conduct

SHOP = ("commands.payments", "shop")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watched(clock):
    return Conduct(clock)


@pytest.fixture
def warnings(monkeypatch):
    said = []
    monkeypatch.setattr(conduct.log, "warning", lambda text, extra: said.append((text, extra["client"])))
    return said


def test_new_key_for_each_retry_is_told_once(watched, warnings):
    for n in range(10):
        watched.asked(SHOP, f"key-{n}", b"the same")

    assert warnings == [
        ("a client asks for the same under a new key each time; a retry must keep its key", "shop")
    ]


def test_one_key_for_everything_is_told_once(watched, warnings):
    for n in range(10):
        watched.reused(SHOP, "key", b"request %d" % n)

    assert len(warnings) == 1
    assert "one key" in warnings[0][0]


def test_good_clients_are_not_told_of(watched, warnings, clock):
    for n in range(10):
        watched.asked(SHOP, f"key-{n}", b"request %d" % n)
        watched.asked(SHOP, "key", b"a retry")
        watched.asked((SHOP[0], f"client-{n}"), f"key-{n}", b"what many ask for")
        watched.asked(SHOP, f"daily-{n}", b"what is asked for daily")
        clock.now += 86_400

    assert warnings == []


def test_memory_is_bounded(watched, monkeypatch):
    monkeypatch.setattr(conduct, "REMEMBERED", 10)
    for n in range(100):
        watched.asked(SHOP, f"key-{n}", b"request %d" % n)

    assert len(watched._seen) == 10  # noqa: SLF001
