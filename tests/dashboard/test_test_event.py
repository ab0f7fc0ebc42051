from dataclasses import replace

import pytest

from tests.dashboard.conftest import SECRET


@pytest.fixture
def allowed(inbox):
    """The source `stripe`, with `tests = true`."""
    sources = inbox.settings.sources
    sources["stripe"] = replace(sources["stripe"], secrets=(SECRET,), tests=True)


@pytest.mark.usefixtures("allowed")
def test_button_sends_a_test_event_which_says_so(inbox, browser):
    page = browser.get("/admin/sources/stripe").text

    answer = browser.post("/admin/test-event", source="stripe", type="customer.created")

    assert "Send test event" in page
    assert "<option>customer.created</option>" in page
    assert inbox.rows("SELECT type, is_test, status FROM hookonce.event_states") == [
        ("customer.created", True, "received")
    ]
    assert "handlers see <code>event.is_test</code>" in browser.get(answer.location).text


@pytest.mark.usefixtures("allowed")
def test_test_event_is_audited_and_two_of_them_are_two_events(inbox, browser):
    browser.get("/admin/sources")
    browser.post("/admin/test-event", source="stripe")
    browser.get("/admin/sources")
    browser.post("/admin/test-event", source="stripe")

    assert inbox.rows("SELECT count(*) FROM hookonce.event_states WHERE is_test AND repeat_of IS NULL") == [
        (2,)
    ]
    assert [row[:3] for row in inbox.audit()][-2:] == [
        ("admin (dashboard)", "test event", "source stripe")
    ] * 2


def test_source_that_does_not_allow_tests_has_no_button_and_takes_none(inbox, browser):
    page = browser.get("/admin/sources").text

    answer = browser.post("/admin/test-event", source="stripe")

    assert "Send test event" not in page
    assert answer.status_code == 409
    assert "tests = true in [sources.stripe]" in answer.text.replace("&#39;", "'")
    assert inbox.rows("SELECT count(*) FROM hookonce.event_states") == [(0,)]


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    ("form", "status"),
    [({}, 400), ({"source": "nowhere"}, 404), ({"source": "stripe", "type": "invoice.payd"}, 404)],
)
def test_test_event_of_what_is_not_there_is_refused(browser, form, status):
    browser.get("/admin/sources")

    assert browser.post("/admin/test-event", **form).status_code == status


@pytest.mark.usefixtures("allowed")
def test_test_event_without_the_form_token_is_refused(inbox, browser):
    assert browser.client.post("/admin/test-event", data={"source": "stripe"}).status_code == 403
    assert inbox.rows("SELECT count(*) FROM hookonce.event_states") == [(0,)]


@pytest.mark.usefixtures("allowed")
def test_empty_inbox_offers_a_sample_where_the_source_takes_tests(browser):
    page = browser.get("/admin/").text

    assert ">Send a sample<" in page
    assert "hookonce trigger stripe" not in page
    assert "hookonce trigger github" in page
