"""Rejected deliveries are shown and explained by the number that the list has."""

import json
import re
from datetime import UTC, datetime

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.ledger.rejected import Sample, add_rejections

BODY = b'{"id": "evt_1", "type": "invoice.paid", "amount": 7}'
KEY = bytes(range(32))
SECRET = "whsec_of_the_tests"
NOW = datetime.now(UTC)


@pytest.fixture
def refuse(ledger):
    """A function: note that a delivery was refused, and give its number in the log."""

    def note(delivery, reason="bad_signature", source="stripe", prefix=1024):
        kept = (json.dumps(dict(delivery.headers)), delivery.body[:prefix])
        add_rejections(
            ledger, [Sample(NOW, source, reason, "no v1 signature matches", *kept)], {(source, reason): 1}
        )
        return str(ledger.execute("SELECT max(id) FROM hookonce.rejected").fetchone()[0])

    return note


def stripe(body=BODY, signed_with=SECRET):
    return load("stripe").delivery(body, signed_with, NOW)


def changed(delivery, body):
    return type(delivery)(delivery.method, delivery.url, delivery.headers, body)


@pytest.mark.usefixtures("inbox")
def test_rejected_delivery_is_shown_by_the_number_of_the_list(hookonce, refuse):
    number = refuse(stripe())

    listed, shown = hookonce("rejected", "list"), hookonce("rejected", "show", number, "--json")

    assert re.match(rf"ID +REJECTED AT.*\n{number} ", listed.out.decode())
    assert shown.documents[0]["body_prefix"] == BODY.decode()
    assert BODY.decode() in hookonce("rejected", "show", number).out.decode()
    assert shown.documents[0]["reason"] == "bad_signature"


@pytest.mark.usefixtures("inbox")
def test_facts_of_a_rejected_delivery_are_folded_between_words_and_below_each_other(
    hookonce, refuse, monkeypatch
):
    number = refuse(stripe())
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")

    lines = hookonce("rejected", "show", number).lines

    (at,) = [at for at, line in enumerate(lines) if line.startswith("do ")]
    indent = len(lines[at]) - len(lines[at].removeprefix("do").lstrip())
    assert lines[at + 1].startswith(" " * indent + "key, not")
    assert max(map(len, lines[at : at + 3])) <= 80
