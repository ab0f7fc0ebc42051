"""A source that accepts live events only keeps its sender's test events, and gives them to nobody."""

import contextlib
import json
from datetime import timedelta

import pytest

from hookonce.providers.kit import registry
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.replay.events import ReplayOutcome, replay
from hookonce.receiver.ledger.runs import ignored
from hookonce.receiver.samples import documents, files
from tests.support.captured import captured_of
from tests.support.for_each import for_each
from tests.support.in_process import Receiver
from tests.support.senders_page import provider_of

KEY = "whsec_of_the_mode"


@pytest.fixture
def receiver(database_url, redis_url):
    with contextlib.closing(Receiver(database_url, redis_url)) as running:
        running.add("stripe", load("stripe"), KEY, accept="live")
        yield running


def send(receiver, event_id, **facts):
    body = json.dumps({"id": event_id, "type": "invoice.paid", **facts}).encode()
    return receiver.send("stripe", load("stripe").delivery(body, KEY, receiver.now))


def states(receiver):
    return dict(receiver.query("SELECT event_id, status FROM hookonce.event_states"))


def test_event_of_the_other_mode_is_answered_and_kept_as_ignored(receiver):
    assert send(receiver, "evt_1", livemode=False).status_code == 200
    assert send(receiver, "evt_2", livemode=True).status_code == 200
    assert send(receiver, "evt_3").status_code == 200

    assert states(receiver) == {"evt_1": "ignored", "evt_2": "received", "evt_3": "received"}
    [(why,)] = receiver.query("SELECT error FROM hookonce.failures")
    assert why == 'a test event, and source stripe has accept = "live"'


def test_event_of_the_other_mode_is_a_duplicate_when_it_comes_again(receiver):
    send(receiver, "evt_1", livemode=False)

    assert send(receiver, "evt_1", livemode=False).json["status"] == "duplicate"
    assert states(receiver) == {"evt_1": "ignored"}


def test_worker_that_starts_leaves_it_ignored_and_a_replay_runs_it(receiver):
    send(receiver, "evt_1", livemode=False)
    with connections.connect(receiver.settings.database_url) as connection:
        assert ignored.requeue(connection, lambda *_: [None], timedelta(minutes=15)) == []
        assert states(receiver) == {"evt_1": "ignored"}

        [outcome] = replay(connection, [receiver.query("SELECT id FROM hookonce.events")[0][0]], "ann")

    assert outcome.fate is ReplayOutcome.REPLAYED
    assert states(receiver) == {"evt_1": "received"}


def test_fixed_id_of_tests_is_no_duplicate_of_another_type(receiver):
    receiver.add("stripe", load("stripe"), KEY)
    fixed = "evt_00000000000000"

    answers = [send(receiver, fixed, type=kind).json["status"] for kind in ("a", "b", "a")]

    assert answers == ["accepted", "accepted", "duplicate"]


def test_sender_that_does_not_tell_its_mode_takes_no_accept(tmp_path):
    (tmp_path / "hookonce.toml").write_text('[sources.github]\naccept = "live"\nsecrets = ["env:S"]\n')

    with pytest.raises(ConfigError, match="github does not tell test events from live ones"):
        load_settings({"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"), "S": "s" * 20})


@for_each(name for name in registry.names(()) if provider_of(name).mode)
def test_sender_that_tells_its_mode_does_so_in_its_samples(name):
    for case in captured_of(name):
        if not (case.is_genuine and case.signing):
            continue
        for kind in files.types(name):
            sent = documents.fresh(case.provider, kind, case.now).delivery(case.signing, case.now, "")
            modes = {case.provider.mode_of(sent, event) for event in case.events(sent)}
            assert modes <= {"live", "test"}, kind
