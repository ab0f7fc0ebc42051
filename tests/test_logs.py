import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import responses
from gunicorn.config import Config

from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver import logs
from hookonce.receiver.web.gunicorn_log import JsonLogger
from tests.support.in_process import Receiver
from tests.support.inbox import effect, inbox

__all__ = ["inbox"]
SECRET = "whsec_of_the_tests"


@pytest.fixture
def lines(caplog):
    """What was logged under a message, as the fields that were given."""
    caplog.set_level(logging.INFO)
    return lambda message: [vars(record) for record in caplog.records if record.getMessage() == message]


@pytest.fixture
def receiver(inbox):
    receiver = Receiver(inbox.settings.database_url, inbox.settings.redis_url)
    receiver.add("stripe", load("stripe"), SECRET)
    yield receiver
    receiver.close()


def deliver(receiver, body=b'{"id": "evt_1", "type": "invoice.paid"}', secret=SECRET):
    return receiver.send(
        "stripe", Delivery("POST", "/", load("stripe").sign(body, secret, receiver.now), body)
    )


def test_log_names_each_delivery_and_leads_from_it_to_its_runs(receiver, inbox, lines):
    inbox.on(effect)
    deliver(receiver)
    deliver(receiver)
    inbox.work()

    first, second = lines("delivery")
    (run,) = lines("run")
    assert len({first["delivery"], second["delivery"]}) == 2
    assert first["ids"] == [run["event"]]
    assert (run["handler"], run["attempt"], run["status"]) == ("effect", 1, "done")
    assert "trace" not in run


def test_log_hashes_what_senders_call_things_where_that_is_wanted(inbox, lines):
    settings = replace(inbox.settings, log_ids="hash")
    receiver = Receiver(settings.database_url, settings.redis_url, log_ids="hash")
    receiver.add("stripe", load("stripe"), SECRET)
    inbox.drains.append(SingleSlot(settings, inbox.registry))
    inbox.on(effect)
    try:
        deliver(receiver, b'{"id": "evt_1", "type": "invoice.paid", "account": "acct_of_ann"}')
        inbox.work()
        deliver(receiver, b'{"id": "evt_1", "type": "invoice.paid", "account": "acct_of_ann", "amount": 5}')
    finally:
        receiver.close()
        logs.hash_ids(hashed=False)

    (first, again), (run,), (conflict,) = lines("delivery"), lines("run"), lines("conflict")
    assert first["event_ids"] == ["7d4e5a76eae6d8c1"]
    assert first["accounts"] == [run["account"]] == again["accounts"]
    assert first["fingerprints"] == [run["fingerprint"]] == [conflict["known_fingerprint"]]
    assert conflict["fingerprint"] != conflict["known_fingerprint"]
    assert "evt_1" not in str([first, again, run, conflict])
    assert "ann" not in str([first, again, run, conflict])


def test_log_shows_ids_as_they_are_and_no_more_of_them_than_a_line_can_bear():
    assert logs.shown("evt_1") == "evt_1"
    assert len(logs.shown("x" * 1000)) == logs.MAX_ID


def test_log_names_a_delivery_that_was_refused(receiver, lines):
    deliver(receiver, secret="another")

    (line,) = lines("rejected")
    assert (len(line["delivery"]), line["reason"]) == (16, "bad_signature")


def test_log_of_a_conflict_names_its_event(receiver, lines):
    deliver(receiver)
    deliver(receiver, b'{"id": "evt_1", "type": "other"}')

    (accepted, _), (conflict,) = lines("delivery"), lines("conflict")
    assert accepted["ids"] == [conflict["event"]]


@pytest.fixture
def limited():
    """A logger of its own, what it wrote, and the hands of its clock."""
    limit = logs.RateLimit(lambda: clock.now)
    logger, clock, written = logging.getLogger("tests.limited"), SimpleNamespace(now=0.0), []
    logger.setLevel(logging.INFO)
    logger.addFilter(limit)
    handler = logging.Handler()
    handler.emit = written.append
    logger.addHandler(handler)
    yield logger, written, clock
    logger.removeHandler(handler)
    logger.removeFilter(limit)


def test_log_has_a_few_warnings_of_a_kind_and_says_how_many_it_left_out(limited):
    logger, written, clock = limited
    for number in range(logs.LINES_PER_MINUTE + 7):
        logger.warning("key unavailable: %s", number, extra={"source": "sns"})
    assert len(written) == logs.LINES_PER_MINUTE

    clock.now += 60
    logger.warning("key unavailable: %s", "again", extra={"source": "sns"})
    logger.warning("key unavailable: %s", "once more", extra={"source": "sns"})

    assert len(written) == logs.LINES_PER_MINUTE + 2
    assert [vars(line).get("suppressed") for line in written[-2:]] == [7, None]


def test_log_counts_other_messages_sources_and_exceptions_apart(limited):
    logger, written, _ = limited

    for kind in (KeyError, ValueError):
        for _ in range(50):
            logger.warning("overloaded", extra={"source": "sns"})
            logger.warning("overloaded", extra={"source": "stripe"})
            logger.warning("key unavailable", extra={"source": "sns"})
            logger.error("a request failed", exc_info=kind())
            logger.info("rejected")

    assert len(written) == 3 * logs.LINES_PER_MINUTE + 2 * logs.LINES_PER_MINUTE + 100


def test_log_says_how_many_lines_it_left_out_in_its_json(limited):
    logger, written, clock = limited
    for clock.now in (0,) * 11 + (60,):
        logger.warning("overloaded")

    assert json.loads(logs.formatter().format(written[-1]))["suppressed"] == 1


STRANGERS_REACH = ("web", "api", "dashboard", "intake", "outbound", "monitoring", "privacy")
AUTHENTIC = {
    *("intake/deduplication.py", "intake/pipeline.py", "intake/quarantine_buffer.py"),
    *("intake/consumers.py", "intake/sender_api/rounds.py"),
}
"""Modules that warn of authentic deliveries or of servers that are configured, or have a limit of their own."""


def test_log_of_all_that_strangers_reach_is_limited():
    root = Path(logs.__file__).parent
    places = [path for each in STRANGERS_REACH for path in (root / each).rglob("*.py")] + [root / "app.py"]
    unlimited = re.compile(r"^log = (?!(?:logs\.)?limited\(__name__\))", re.MULTILINE)

    found = {path.relative_to(root).as_posix() for path in places if unlimited.search(path.read_text())}

    assert found == AUTHENTIC


def test_log_of_refusals_is_not_flooded_by_strangers(receiver, caplog):
    receiver.add("flooded", load("amazon_sns", options={"topics": ["arn:aws:sns:eu-west-1:1:name"]}), "")
    message = {
        "Type": "Notification",
        "MessageId": "1",
        "TopicArn": "arn:aws:sns:eu-west-1:1:name",
        "Message": "x",
        "Timestamp": "2026-01-01T00:00:00.000Z",
        "SignatureVersion": "2",
        "Signature": "AAAA",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem",
    }
    body = json.dumps(message).encode()

    with responses.RequestsMock(assert_all_requests_are_fired=False):  # nobody answers
        found = [receiver.send("flooded", Delivery("POST", "/", {}, body)) for _ in range(40)]

    assert {answer.status_code for answer in found} == {503}
    lines = [record for record in caplog.records if record.getMessage().startswith("key unavailable")]
    assert 1 <= len(lines) <= logs.LINES_PER_MINUTE


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
