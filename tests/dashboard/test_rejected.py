import json
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.dashboard.rejected import PAGE_SIZE
from hookonce.receiver.ledger.rejected import Sample, add_rejections
from tests.dashboard.conftest import SECRET
from tests.dashboard.test_events import EVIL


def refuse(inbox, reason="bad_signature", source="stripe", times=1, **changes):
    at = datetime.now(UTC)
    kept = {
        "detail": "no v1 signature matches",
        "headers": json.dumps({"x-a": "b"}),
        "body_prefix": b"{}",
    } | changes
    rows = [Sample(at + timedelta(milliseconds=n), source, reason, **kept) for n in range(times)]
    add_rejections(inbox.connection, rows, {(source, reason): times})


def test_nothing_was_refused_in_an_empty_inbox(browser):
    assert "No rejected deliveries" in browser.get("/admin/rejected").text


@pytest.mark.parametrize(
    ("query", "shown"),
    [("", 3), ("source=stripe", 2), ("reason=stale", 1), ("source=(unknown)", 1), ("source=x", 0)],
)
def test_refused_deliveries_are_listed_by_source_and_reason(inbox, browser, query, shown):
    refuse(inbox)
    refuse(inbox, "stale")
    refuse(inbox, "unknown_source", "")

    page = browser.get(f"/admin/rejected?{query}").text

    assert page.count('data-label="what failed"') == shown


def test_refused_deliveries_are_read_page_by_page(inbox, browser):
    refuse(inbox, times=PAGE_SIZE + 1)

    page = browser.get("/admin/rejected").text

    assert 'before=2"' in page
    assert browser.get("/admin/rejected?before=2").text.count('data-label="what failed"') == 1


def test_refused_delivery_shows_what_failed_and_what_to_do(inbox, browser):
    refuse(inbox)

    page = browser.get("/admin/rejected/1").text

    assert "no v1 signature matches" in page
    assert "Copy the signing secret of this very endpoint again" in page


def test_refused_delivery_is_explained_check_by_check(inbox, browser):
    sent = load("stripe").delivery(b'{"id": "evt_1", "type": "a"}\n', SECRET, datetime.now(UTC))
    refuse(inbox, headers=json.dumps(dict(sent.headers)), body_prefix=sent.body.strip())

    page = browser.get("/admin/rejected/1").text

    assert "header stripe-signature" in page
    assert "the line end at its end was cut off" in page
    assert SECRET not in page


def test_refused_delivery_that_is_not_kept_is_told(browser):
    assert browser.get("/admin/rejected/5").status_code == 404


@pytest.mark.parametrize("path", ["/admin/rejected", "/admin/rejected/1"])
def test_refused_delivery_is_escaped(inbox, browser, path):
    clean = EVIL.replace("\x1b", "")
    refuse(inbox, detail=clean, headers=json.dumps({clean: clean}), body_prefix=EVIL.encode())

    page = browser.get(path).text

    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize(
    ("query", "status"), [(f"?before={'9' * 30}", 200), ("?before=-1", 200), (f"/{'9' * 30}", 404)]
)
def test_number_beyond_all_ids_is_no_failure_of_the_ledger(browser, query, status):
    assert browser.get(f"/admin/rejected{query}").status_code == status
