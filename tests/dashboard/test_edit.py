"""*Edit and send again*: an editor that needs no script."""

import html
import re
from dataclasses import replace

import pytest

from tests.dashboard.conftest import SECRET

BODY = b'\n{"id": "evt_1NG8Du2eZvKYlo2C", "type": "invoice.paid", "note": "</textarea><script>x()</script>"}'


@pytest.fixture
def number(inbox):
    inbox.settings.sources["stripe"] = replace(
        inbox.settings.sources["stripe"], secrets=(SECRET,), tests=True
    )
    (number,) = inbox.store("evt_1NG8Du2eZvKYlo2C", body=BODY)
    return number


def typed(page):
    return html.unescape(re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)[1])


def test_editor_has_the_body_as_it_came_and_runs_no_script_of_it(browser, number):
    event = browser.get(f"/admin/events/{number}?status=dead").text

    page = browser.get(f"/admin/events/{number}/edit").text

    assert f'href="/admin/events/{number}/edit?status=dead"' in event
    assert typed(page) == BODY.decode()
    assert "<script>x" not in page
    assert 'name="run" value="yes">' in page


@pytest.mark.parametrize(("form", "status"), [({}, "held"), ({"run": "yes"}, "received")])
def test_edited_event_is_shown_and_names_the_one_it_was_made_of(inbox, browser, number, form, status):
    page = browser.get(f"/admin/events/{number}/edit").text
    changed = typed(page).replace("script", "b").replace("\n", "\r\n")

    answer = browser.post(f"/admin/events/{number}/edit", body=changed, **form)
    shown = browser.get(answer.location).text

    assert inbox.rows("SELECT is_test, status FROM hookonce.event_states WHERE id <> %s", number) == [
        (True, status)
    ]
    assert f'<a href="/admin/events/{number}">event {number}</a>, with a body that was edited' in shown
    assert ("A test event that was stored only" in shown) == (status == "held")
    assert inbox.audit()[-1] == ("admin (dashboard)", "send edited", f"event {number}")


def test_refusal_keeps_what_was_typed(browser, number):
    browser.get(f"/admin/events/{number}/edit")

    answer = browser.post(f"/admin/events/{number}/edit", body="no JSON <b>", run="yes")

    assert answer.status_code == 409
    assert typed(answer.text) == "no JSON <b>"
    assert 'name="run" value="yes" checked>' in answer.text
    assert "Not sent: " in answer.text


@pytest.mark.parametrize(("body", "status"), [("x" * 50_000, 413), ("\xe9" * 25_000, 409)])
def test_body_over_the_limit_is_refused(inbox, browser, number, body, status):
    browser.get(f"/admin/events/{number}/edit")

    form = browser.page.text
    token = re.search('name="form_token" value="([^"]+)"', form)[1]
    sent = {"form_token": token, "body": body}
    answer = browser.client.post(
        f"/admin/events/{number}/edit", data=sent, content_type="multipart/form-data"
    )

    assert answer.status_code == status
    assert inbox.rows("SELECT count(*) FROM hookonce.events") == [(1,)]


def without(inbox, **changes):
    inbox.settings.sources["stripe"] = replace(inbox.settings.sources["stripe"], **changes)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"tests": False}, "set tests = true in [sources.stripe]"),
        ({"secrets": (), "secret_names": ()}, "has no signing secret"),
    ],
)
def test_source_that_can_not_be_sent_to_has_no_editor(inbox, browser, number, changes, why):
    without(inbox, **changes)

    page = html.unescape(browser.get(f"/admin/events/{number}/edit").text)

    assert why in page
    assert "<textarea" not in page


def test_event_of_no_source_or_none_at_all_has_no_editor(inbox, browser, number):
    del inbox.settings.sources["stripe"]

    assert "is not configured any more" in browser.get(f"/admin/events/{number}/edit").text
    assert browser.get("/admin/events/999999/edit").status_code == 404


@pytest.mark.usefixtures("number")
def test_body_that_is_no_text_has_no_editor(inbox, browser):
    (binary,) = inbox.store("evt_2", body=b"\xff\xfe")

    assert "<textarea" not in browser.get(f"/admin/events/{binary}/edit").text
