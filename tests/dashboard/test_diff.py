"""*What differs*: a page without scripts, a part of the event's page with them."""

import pytest


@pytest.fixture
def pair(inbox):
    """An event that was done, and one after it whose body is hostile."""
    (done,) = inbox.store("evt_1", body=b'{"name": "Ann", "amount": 1}')
    inbox.end([done], "done")
    (dead,) = inbox.store("evt_2", body=b'{"name": "<script>x()</script>", "amount": 1, "<b>": "\\u202e"}')
    inbox.die(dead)
    return done, dead


def test_event_page_leads_to_its_diff_which_needs_no_script(browser, pair):
    done, dead = pair
    event = browser.get(f"/admin/events/{dead}?status=dead").text

    page = browser.get(f"/admin/events/{dead}/diff?status=dead").text

    assert f'href="/admin/events/{dead}/diff?status=dead"' in event
    assert f'href="/admin/events/{dead}?status=dead">Back to the event' in page
    assert f'<a href="/admin/events/{done}">event {done}</a>' in page
    assert '<th scope="row" class="id">$.name</th><td data-label="difference">changed</td>' in page
    assert "$.amount" not in page


def test_hostile_values_stay_text_in_a_diff(browser, pair):
    page = browser.get(f"/admin/events/{pair[1]}/diff").text

    assert "&lt;script&gt;" in page
    assert "<script>x" not in page
    assert "$[&#34;&lt;b&gt;&#34;]" in page
    assert "\u202e" not in page


def test_diff_is_a_part_of_the_page_where_scripts_ask_for_it(browser, pair):
    part = browser.get(f"/admin/events/{pair[1]}/diff", **{"HX-Request": "true"}).text

    assert part.strip().startswith('<details id="diff" open>')
    assert "<html" not in part


def test_diff_says_why_there_is_none(browser, pair):
    assert (
        "Nothing to compare: no event of this source and type"
        in browser.get(f"/admin/events/{pair[0]}/diff").text
    )
    assert browser.get("/admin/events/999999/diff").status_code == 404
