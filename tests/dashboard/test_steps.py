import re

import pytest

from tests.support.steps import CHARGED, UNKNOWN, event_with_steps, left


@pytest.fixture
def event(inbox):
    return event_with_steps(inbox.connection, CHARGED, UNKNOWN)


def test_event_shows_its_steps(browser, event):
    page = browser.get(f"/admin/events/{event}").text

    assert "shop.pay: charge" in page
    assert '<span class="nt">"id"</span>: <span class="s">"ch_1"</span>' in page
    assert "nobody knows whether it happened" in page
    assert len(re.findall('<code class="id">[0-9a-f]{64}</code>', page)) == 2


def test_person_decides_about_a_stopped_step(inbox, browser, event):
    browser.get(f"/admin/events/{event}")

    answer = browser.post(
        f"/admin/events/{event}/steps",
        handler="shop.pay",
        step="mail",
        decision="done",
        result='{"id": "m_1"}',
    )

    assert answer.location == f"/admin/events/{event}?said=decided"
    page = browser.get(answer.location).text
    assert '<span class="s">"m_1"</span>' in page
    assert "by admin (dashboard)" in page
    assert inbox.audit()[-1] == ("admin (dashboard)", "settle step", f"event {event}")


@pytest.mark.parametrize("form", [{"step": "mail", "decision": "done", "result": "{not json"}, {}])
def test_form_of_a_decision_that_can_not_be_read_is_refused(browser, event, form):
    browser.get(f"/admin/events/{event}")

    assert browser.post(f"/admin/events/{event}/steps", handler="shop.pay", **form).status_code == 400


def test_replay_does_a_step_anew_if_it_is_ticked(inbox, browser, event):
    page = browser.get(f"/admin/events/{event}").text
    browser.post(f"/admin/events/{event}/replay", forget="charge")

    assert 'name="forget" value="charge"' in page
    assert 'name="forget" value="mail"' not in page
    assert left(inbox.connection) == [("shop.pay", "mail", "failed_final")]
