"""Every operation of the desk has a form, which shows a plan before it changes something."""

import re
from datetime import UTC, datetime
from html import unescape

import pytest

from hookonce.receiver.dashboard.operations import NO_PAGE, OPERATIONS
from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.desk.forms import fields
from hookonce.receiver.ledger.rejected import Sample, add_rejections

LOOKS = [name for name, each in OPERATIONS.items() if not each.changes]


def test_each_operation_is_listed(browser):
    page = browser.get("/admin/operations").text

    assert OPERATIONS.keys() | NO_PAGE == ACTIONS.keys()
    assert [name for name in OPERATIONS if f'href="/admin/operations/{name}"' not in page] == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_form_has_each_field(browser, name):
    page = browser.get(f"/admin/operations/{name}").text

    assert [each.name for each in fields(OPERATIONS[name]) if f' name="{each.name}"' not in page] == []


@pytest.mark.parametrize("name", LOOKS)
def test_what_only_looks_is_answered(inbox, browser, name):
    inbox.die(*inbox.store("evt_1", body=b'{"a": "<b>"}'))
    inbox.store("evt_1", body=b'{"a": 2}')
    refused = Sample(datetime.now(UTC), "stripe", "bad_signature", "<b>", '{"x-a": "<b>"}', b"<b>")
    add_rejections(inbox.connection, [refused], {})
    given = {
        "event": "evt_1",
        "body": "1",
        "bulk": "1",
        "source": "stripe",
        "word": "held",
        "text": "a",
        "issue": "0" * 12,
        "rejection": "1",
        "entity": "customer:cus_1",
    }
    entities = "INSERT INTO hookonce.entities VALUES ('stripe', 'customer:cus_1', '', 'shop.credit', 1, 1)"
    inbox.connection.execute(entities)
    typed = "&".join(
        f"{each.name}={given[each.name]}" for each in fields(OPERATIONS[name]) if each.name in given
    )

    answer = browser.get(f"/admin/operations/{name}?asked=yes&{typed}")

    assert (name, answer.status_code) in {(name, 200), ("get_bulk_replay", 404), ("get_issue", 404)}
    assert "<b>" not in answer.text or answer.headers["Content-Type"] == "application/octet-stream"


def test_what_changes_something_is_planned_first(inbox, browser):
    browser.get("/admin/operations/pause")

    plan = browser.post("/admin/operations/pause", kind="source", name="stripe")
    before = inbox.rows("SELECT count(*) FROM hookonce.pauses")
    done = browser.post(
        "/admin/operations/pause", plan=unescape(re.search('name="plan" value="([^"]+)"', plan.text)[1])
    )

    assert (before, "Done." in done.text) == ([(0,)], True)
    assert inbox.rows("SELECT kind, name FROM hookonce.pauses") == [("source", "stripe")]
    assert inbox.audit()[-1] == ("admin (dashboard)", "pause", "source stripe")


@pytest.mark.parametrize(
    ("path", "form", "status", "said"),
    [
        ("pause", {"kind": "source", "name": "strip"}, 404, "did you mean &#39;stripe&#39;?"),
        ("pause", {"kind": "world", "name": "x"}, 400, "kind: expected one of"),
        ("replay", {"events": "nowhere"}, 404, "not in the ledger: nowhere"),
        ("start_bulk_replay", {"filter.status": "dead", "rate": "fast"}, 400, "rate: "),
        ("list_events", {"status": "dead"}, 400, "changes nothing"),
        ("nothing", {}, 404, "There is no such operation"),
        ("pause", {"plan": "[]"}, 400, "can&#39;t be read"),
    ],
)
def test_mistakes_are_told(browser, path, form, status, said):
    browser.get("/admin/operations/pause")

    answer = browser.post(f"/admin/operations/{path}", **form)

    assert (answer.status_code, said in answer.text) == (status, True)
