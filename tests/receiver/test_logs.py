import json
import logging

import pytest
from gunicorn.config import Config
from in_process import Receiver
from inbox import desk, effect

from providers import Delivery
from providers.kit.registry import load
from receiver import logs
from receiver.gunicorn_log import JsonLogger

__all__ = ["desk"]
SECRET = "whsec_of_the_tests"


@pytest.fixture
def lines(caplog):
    """What was logged under a message, as the fields that were given."""
    caplog.set_level(logging.INFO)
    return lambda message: [vars(record) for record in caplog.records if record.getMessage() == message]


@pytest.fixture
def receiver(desk):
    receiver = Receiver(desk.settings.database_url, desk.settings.redis_url)
    receiver.add("stripe", load("stripe"), SECRET)
    yield receiver
    receiver.close()


def deliver(receiver, body=b'{"id": "evt_1", "type": "invoice.paid"}', secret=SECRET):
    return receiver.send(
        "stripe", Delivery("POST", "/", load("stripe").sign(body, secret, receiver.now), body)
    )


def test_log_names_each_delivery_and_leads_from_it_to_its_runs(receiver, desk, lines):
    desk.on(effect)
    deliver(receiver)
    deliver(receiver)
    desk.work()

    first, second = lines("delivery")
    (run,) = lines("run")
    assert len({first["delivery"], second["delivery"]}) == 2
    assert first["ids"] == [run["event"]]
    assert (run["handler"], run["attempt"], run["status"]) == ("effect", 1, "done")
    assert "trace" not in run


def test_log_names_a_delivery_that_was_refused(receiver, lines):
    deliver(receiver, secret="another")

    (line,) = lines("rejected")
    assert (len(line["delivery"]), line["reason"]) == (16, "bad_signature")


def test_log_of_a_conflict_names_its_event(receiver, lines):
    deliver(receiver)
    deliver(receiver, b'{"id": "evt_1", "type": "other"}')

    (accepted, _), (conflict,) = lines("delivery"), lines("conflict")
    assert accepted["ids"] == [conflict["event"]]


def test_log_has_what_gunicorn_says_as_json_too(capsys):
    gunicorn = JsonLogger(Config())

    gunicorn.info("Booting worker with pid: %s", 7)

    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["message"]) == ("INFO", "Booting worker with pid: 7")
    gunicorn.error_log.handlers.clear()


def test_log_of_others_tells_no_urls_however_much_is_asked_for(monkeypatch):
    monkeypatch.setenv("HOOKONCE_LOG_LEVEL", "debug")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)
    config = Config()
    config.set("loglevel", "debug")

    logs.configure()
    gunicorn = JsonLogger(config).error_log

    assert not logging.getLogger("urllib3.connectionpool").isEnabledFor(logging.DEBUG)
    assert not gunicorn.isEnabledFor(logging.DEBUG)
    gunicorn.handlers.clear()
