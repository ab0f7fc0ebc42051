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


def test_source_that_does_not_allow_tests_has_no_button_and_takes_none(inbox, browser):
    page = browser.get("/admin/sources").text

    answer = browser.post("/admin/test-event", source="stripe")

    assert "Send test event" not in page
    assert answer.status_code == 409
    assert "tests = true in [sources.stripe]" in answer.text.replace("&#39;", "'")
    assert inbox.rows("SELECT count(*) FROM hookonce.event_states") == [(0,)]


@pytest.mark.usefixtures("allowed")
def test_empty_inbox_offers_a_sample_where_the_source_takes_tests(browser):
    page = browser.get("/admin/").text

    assert ">Send a sample<" in page
    assert "hookonce trigger stripe" not in page
    assert "hookonce trigger github" in page
