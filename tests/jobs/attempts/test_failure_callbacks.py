import time
from datetime import timedelta

import pytest

import hookonce
from hookonce import GiveUp, RetryLater
from hookonce.jobs.attempts import failure_callbacks
from tests.support.inbox import effect


@pytest.fixture(autouse=True)
def callbacks(monkeypatch):
    monkeypatch.setattr(failure_callbacks, "callbacks", [])


def shaky(event, tx):
    effect(event, tx)
    if event.attempt < 3:
        raise LookupError("not yet")


def test_callback_hears_of_each_failed_attempt_after_it_was_recorded(inbox):
    @hookonce.on_failure
    def hear(failure):
        heard.append(
            (failure.event.event_id, failure.handler, failure.attempt, failure.is_dead, failure.error)
        )
        recorded.extend(inbox.rows("SELECT count(*) FROM hookonce.failures"))

    heard, recorded = [], []
    hookonce.on_failure(hear)
    inbox.on(shaky, attempts=2)
    inbox.on(lambda *_: (_ for _ in ()).throw(GiveUp("never")))
    inbox.deliver("a")

    inbox.work()

    assert [(*row[:4], type(row[4])) for row in sorted(heard, key=lambda row: row[1:3])] == [
        ("a", "<lambda>", 1, True, GiveUp),
        ("a", "shaky", 1, False, LookupError),
        ("a", "shaky", 2, True, LookupError),
    ]
    assert recorded == [(1,), (2,), (3,)]
    assert heard[0][4].__traceback__ is not None


def test_callback_is_told_nothing_secret_and_not_of_what_is_no_failure(inbox):
    heard = []
    hookonce.on_failure(heard.append)
    inbox.on(lambda *_: (_ for _ in ()).throw(RetryLater(3600)))
    inbox.deliver("a", headers='{"x-signature": "s3cret"}', body=b'{"card": 4242}')

    inbox.work()
    assert heard == []

    inbox.on(shaky, attempts=1)
    inbox.deliver("b", headers='{"x-signature": "s3cret"}', body=b'{"card": 4242}')
    inbox.work()
    (failure,) = heard
    assert not {"s3cret", "4242"} & set(repr(failure).replace('"', " ").split())
    assert not hasattr(failure.event, "raw")


def hang(_):
    time.sleep(30)


def leave(_):
    raise SystemExit


def break_off(_):
    raise RuntimeError("the tracker is away, key abc")


async def fail_asynchronously(_):
    raise RuntimeError("the tracker is away, key abc")


@pytest.mark.parametrize("callback", [hang, leave, break_off, fail_asynchronously])
def test_callback_that_fails_harms_no_run_and_no_other_callback(inbox, caplog, monkeypatch, callback):
    monkeypatch.setattr(failure_callbacks, "TIMEOUT", timedelta(seconds=2))
    heard = []
    hookonce.on_failure(callback)
    hookonce.on_failure(heard.append)
    inbox.on(shaky)
    inbox.deliver("a")

    while inbox.work():
        pass

    assert inbox.runs() == [("a", "shaky", "done", 3)]
    assert inbox.effects() == ["a"]
    assert len(heard) == 2
    assert "a callback of on_failure failed" in caplog.text
    assert "key abc" not in caplog.text


def test_async_callback_is_awaited(inbox):
    @hookonce.on_failure
    async def hear(failure):
        heard.append(failure.attempt)

    heard = []
    inbox.on(shaky)
    inbox.deliver("a")

    inbox.work()

    assert heard == [1, 2]


def test_only_what_can_be_called_is_registered():
    with pytest.raises(TypeError, match="expected a function that takes a failed attempt"):
        hookonce.on_failure("sentry")
