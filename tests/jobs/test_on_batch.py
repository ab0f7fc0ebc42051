"""What `@on_batch` takes, and what it refuses, at the start of a worker."""

import re
from datetime import timedelta

import pytest

from hookonce import on_batch
from hookonce.jobs import handlers
from hookonce.jobs.handlers import HandlerError, Registry
from hookonce.receiver.ledger.runs.run_limits import BatchSize


def take(events, tx):
    """Take a batch."""


@pytest.fixture
def registry(monkeypatch):
    made = Registry()
    monkeypatch.setattr(handlers, "registry", made)
    return made


@pytest.mark.parametrize(
    ("wait", "span"),
    [
        ("200ms", timedelta(milliseconds=200)),
        ("2s", timedelta(seconds=2)),
        (0.5, timedelta(seconds=0.5)),
        (timedelta(seconds=3), timedelta(seconds=3)),
        (0, timedelta(0)),
    ],
)
def test_wait_is_a_short_time(registry, wait, span):
    on_batch("segment", "track", most=300, wait=wait)(take)

    (handler,) = registry
    assert handler.batch == BatchSize(300, span)
    assert registry.rows()[0][-1] == 300


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"most": 1}, "expected a number of events from 2 to 5000"),
        ({"most": 5001}, "expected a number of events from 2 to 5000"),
        ({"most": True}, "expected a number of events from 2 to 5000"),
        ({"wait": "200"}, 'expected "200ms"'),
        ({"wait": "5m"}, 'expected "200ms"'),
        ({"wait": -1}, 'expected "200ms"'),
        ({"wait": 61}, 'expected "200ms"'),
        ({"wait": timedelta(minutes=2)}, 'expected "200ms"'),
        ({"tx": "none"}, "tx= does not go with @on_batch: a batch is one transaction"),
        ({"rate": "often"}, "is not a rate"),
        ({"concurrency": 0}, "concurrency=0 is wrong"),
        ({"per": "account"}, "without rate= or concurrency="),
        ({"moment": 1}, "there is no such parameter"),
        ({"attempts": 0}, "attempts=0 is wrong"),
        ({"isolation": "none"}, "is not an isolation level"),
    ],
)
def test_what_does_not_fit_a_batch_is_refused(registry, options, said):
    with pytest.raises(HandlerError, match=said):
        on_batch("segment", "track", **options)(take)
    assert len(registry) == 0


def test_commands_are_not_done_in_batches(registry):
    with pytest.raises(HandlerError, match="a command is done by itself"):
        on_batch("commands.refund")(take)
    assert len(registry) == 0


def test_one_name_has_one_size(registry):
    on_batch("segment", "track", name="n", most=10)(take)

    with pytest.raises(HandlerError, match="in two places"):
        on_batch("segment", "page", name="n", most=20)(take)
    assert len(registry) == 1


def one(events):
    """Take no transaction."""


def turned(tx, events):
    """Take them the wrong way round."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (one, "must take two arguments, (events, tx) or (events, session)"),
        (turned, "a handler takes (events, tx) or (events, session)"),
    ],
)
@pytest.mark.usefixtures("registry")
def test_error_about_arguments_speaks_of_events(function, said):
    with pytest.raises(HandlerError, match=re.escape(said)):
        on_batch("segment", "track")(function)
