"""Rejected deliveries are shown and explained by the number that the list has."""

import json
import re
from datetime import UTC, datetime

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.decryption import pack
from hookonce.receiver.ledger.quarantine import Arrival
from hookonce.receiver.ledger.rejected import Rejection, add_rejections
from hookonce.receiver.source import Quarantine

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
            ledger, [Rejection(NOW, source, reason, "no v1 signature matches", *kept)], {(source, reason): 1}
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
    assert shown.documents[0]["reason"] == "bad_signature"


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize(
    ("delivery", "cause"),
    [
        (stripe(signed_with="whsec_of_another"), "another secret, or the body was changed"),
        (changed(stripe(), BODY + b"\n"), "a line end was added at its end"),
        (changed(stripe(), json.dumps(json.loads(BODY), indent=2).encode()), "parsed and written again"),
        (stripe(), "genuine with the secrets that are configured now"),
    ],
)
def test_rejected_delivery_is_explained_check_by_check(hookonce, refuse, delivery, cause):
    number = refuse(delivery)

    explained = hookonce("rejected", "explain", number)

    assert cause in explained.out.decode()
    assert "header stripe-signature" in explained.out.decode()
    assert b"of_the_tests" not in explained.out


def test_delivery_in_quarantine_is_explained_whole(hookonce, refuse, inbox, ledger, monkeypatch):
    monkeypatch.setenv("KEY", KEY.hex())
    tables = (inbox / "hookonce.toml").read_text()
    (inbox / "hookonce.toml").write_text(f'[receiver]\nencryption_keys = ["env:KEY"]\n{tables}')
    long = b'{"id": "evt_1", "pad": "%s"}' % (b"x" * 5000)
    sent = changed(stripe(long), long + b"\n")
    number = refuse(sent)
    assert "capture a whole delivery" in hookonce("rejected", "explain", number).out.decode()

    arrival = Arrival("bad_signature", datetime.now(UTC) - NOW, pack(sent))
    assert quarantine.keep(ledger, "stripe", Quarantine(), Keyring([KEY]), [arrival]) == 0

    assert "a line end was added at its end" in hookonce("rejected", "explain", number).out.decode()


@pytest.mark.usefixtures("inbox")
def test_rejected_delivery_of_no_source_says_what_is_known(hookonce, refuse):
    number = refuse(stripe(), "unknown_source", "")

    [explained] = hookonce("rejected", "explain", number, "--json").documents

    assert (explained["reason"], explained["checks"]) == ("unknown_source", [])
    assert "hookonce sources list" in explained["advice"]


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize("verb", ["show", "explain"])
def test_rejected_delivery_that_is_not_kept_is_not_found(hookonce, verb):
    asked = hookonce("rejected", verb, "7")

    assert asked.code == 4
    assert "rejected delivery 7 is not kept; `hookonce rejected list` shows those that are" in asked.err
