from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.dashboard import reverify
from hookonce.receiver.ledger.decryption import pack
from hookonce.receiver.ledger.quarantine import Arrival, keep
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.work_queue import WorkQueue
from hookonce.receiver.source import Quarantine
from tests.dashboard.conftest import SECRET


@pytest.fixture
def refused(inbox):
    """Two deliveries in quarantine: one that is genuine with the secret there is now, and a forged one."""
    arrivals = []
    for number, secret in ((1, SECRET), (2, "whsec_of_somebody_else")):
        body = b'{"id": "evt_%d", "type": "invoice.paid"}' % number
        delivery = load("stripe").delivery(body, secret, datetime.now(UTC), url="/hooks/stripe")
        arrivals.append(Arrival("bad_signature", timedelta(0), pack(delivery)))
    keep(inbox.connection, "stripe", Quarantine(), inbox.settings.keyring, arrivals)


@pytest.mark.usefixtures("refused")
def test_quarantine_is_checked_again_and_what_is_genuine_comes_in(inbox, browser, redis_url):
    before = browser.get("/admin/rejected").text

    answer = browser.post("/admin/reverify", source="stripe")

    assert "Quarantine" in before
    assert "2 verified again: 1 genuine, 1 new event." in browser.get(answer.location).text
    assert inbox.rows("SELECT event_id FROM hookonce.event_states") == [("evt_1",)]
    assert inbox.rows("SELECT count(*) FROM hookonce.quarantine") == [(1,)]
    assert inbox.audit()[-1][0] == "admin (dashboard)"
    with connect(redis_url) as client:
        assert WorkQueue(client).pending() == 1


@pytest.mark.usefixtures("refused")
def test_one_request_checks_no_more_than_its_time_allows(browser, monkeypatch):
    monkeypatch.setattr(reverify, "MAX_TIME", timedelta(0))
    browser.get("/admin/rejected")

    answer = browser.post("/admin/reverify", source="stripe")

    assert "1 verified again" in browser.get(answer.location).text


@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize(("form", "status"), [({"source": "nowhere"}, 404), ({}, 400)])
def test_second_look_at_no_source_is_refused(browser, form, status):
    browser.get("/admin/rejected")

    assert browser.post("/admin/reverify", **form).status_code == status
