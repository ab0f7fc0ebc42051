"""The console under an API token: its scopes decide what is shown, what is offered and what is done."""

import json
import re

import pytest

from hookonce.receiver.dashboard.blueprint import _NEEDS as NEEDS
from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.ledger.access import api_tokens
from tests.desk.test_reachable_actions import WHERE

PLANTED = "planted-4711"
BODY = json.dumps({"id": "evt_1", "said": PLANTED}).encode()
ID = "0123456789ab"


@pytest.fixture
def event(inbox):
    """A dead event with content in each place that a page shows."""
    headers = json.dumps({"x-said": PLANTED, "stripe-signature": f"t=1,v1={'c0ffee' * 8}"})
    (number,) = inbox.store("evt_1", body=BODY, headers=headers, url=f"/hooks/stripe?said={PLANTED}")
    inbox.die(number, error=f"ValueError: no customer {PLANTED} (shop/handlers.py:12)")
    values = {"event": number, "issue": ID, "headers": headers, "body": BODY}
    for statement in (
        "UPDATE hookonce.failures SET issue = %(issue)s",
        "UPDATE hookonce.runs SET issue = %(issue)s",
        "INSERT INTO hookonce.issues (id, handler, title, first_release) VALUES (%(issue)s, 'shop.credit', 'E', 'r')",
        (
            "INSERT INTO hookonce.rejected (rejected_at, source, reason, detail, headers, body_prefix) "
            "VALUES (now(), 'stripe', 'stale', 'too old', %(headers)s, %(body)s)"
        ),
        (
            "INSERT INTO hookonce.conflicts (event, fingerprint, headers, body) "
            "VALUES (%(event)s, '\\x01', %(headers)s, %(body)s)"
        ),
    ):
        inbox.connection.execute(statement, values)
    return number


@pytest.fixture
def signed_in(inbox):
    def sign_in(*scopes):
        token = api_tokens.create(
            inbox.connection, f"t{len(scopes)}-{scopes[0]}", list(scopes), None, "a test"
        )
        browser = inbox.browser()
        assert browser.sign_in(token=token).status_code == 303
        return browser

    return sign_in


def pages(event):
    """The address of each page that shows something, and of searches in what it shows."""
    fixed = (
        *(
            "/",
            "/events",
            "/issues",
            "/alerts",
            "/stopped-steps",
            "/commands",
            "/bulk",
            "/bulk/new?status=dead",
        ),
        *(
            "/audit",
            "/limits",
            "/rejected",
            "/rejected/1",
            "/sources",
            "/sources/stripe",
            "/handlers",
            "/operations",
        ),
        *("/operations/get_stats", "/operations/list_dead_letters?asked=yes"),
    )
    return [
        *fixed,
        *(f"/events?error=*{PLANTED}*", f"/events?body={PLANTED}", f"/events/{event}?error=*{PLANTED}*"),
        *(f"/events/{event}{part}" for part in ("", "/body", "/diff", "/edit", "/conflicts/1")),
        f"/issues/{ID}",
        f"/operations/get_event?event={event}",
        f"/operations/get_event_body?event={event}",
        f"/operations/search_bodies?text={PLANTED}",
    ]


def holds(answer):
    return PLANTED in answer.text.replace(f"*{PLANTED}*", "").replace(f'value="{PLANTED}"', "")


@pytest.mark.parametrize("scopes", [("read",), ("read", "replay")])
def test_page_shows_no_content_without_the_scope_bodies(signed_in, event, scopes):
    browser = signed_in(*scopes)

    answers = {path: browser.get(f"/admin{path}") for path in pages(event)}

    assert {path for path, answer in answers.items() if answer.status_code >= 500} == set()
    assert {path for path, answer in answers.items() if holds(answer)} == set()
    assert all(known in answers[f"/events/{event}"].text for known in ("ValueError", "shop/handlers.py:12"))


def test_page_shows_content_with_the_scope_bodies_and_no_signature(signed_in, event):
    browser = signed_in("read", "bodies")

    answers = {path: browser.get(f"/admin{path}") for path in pages(event)}

    assert {f"/events/{event}", f"/events/{event}/body", "/events", f"/issues/{ID}", "/rejected/1"} <= {
        path for path, answer in answers.items() if holds(answer)
    }
    assert {path for path, answer in answers.items() if "c0ffee" in answer.text} == set()


def test_content_is_looked_at_in_the_audit_under_the_name_of_the_token(inbox, signed_in, event):
    signed_in("read", "bodies").get(f"/admin/events/{event}")

    assert ("t2-read (dashboard)", "look", f"event {event}") in inbox.rows(
        "SELECT who, action, subject FROM hookonce.audit"
    )


def forms(inbox):
    """The endpoint of every form of the console, with a path that fits it."""
    for rule in inbox.app.url_map.iter_rules():
        if rule.endpoint.startswith("admin.") and "POST" in (rule.methods or ()):
            name = rule.endpoint.removeprefix("admin.")
            if name not in {"enter", "leave"}:
                path = re.sub(r"<int:\w+>", "1", rule.rule).replace("<number>", ID)
                yield name, path.replace("<name>", "erase_events")


def state(inbox):
    """All that a form could change."""
    tables = ("queue", "runs", "pauses", "issues", "steps", "bulk_replays", "events", "bodies", "rejected")
    return {each: inbox.rows(f"TABLE hookonce.{each}") for each in tables}


def test_reader_is_refused_every_form_and_changes_nothing(inbox, signed_in, event):
    browser, before = signed_in("read", "bodies"), state(inbox)
    browser.get("/admin/")
    token = re.search('name="form_token" value="([^"]+)"', browser.page.text)[1]
    told = {
        "form_token": token,
        "event": str(event),
        "events": str(event),
        "source": "stripe",
        "kind": "source",
    }

    answers = {
        name: browser.client.post(path, data={**told, "name": "stripe", "state": "fixed", "status": "dead"})
        for name, path in forms(inbox)
    }

    assert {name for name, answer in answers.items() if answer.status_code != 403} == set()
    assert state(inbox) == before


@pytest.mark.parametrize("form", [{}, {"form_token": "wrong"}])
def test_form_without_the_token_of_its_session_is_refused_and_changes_nothing(inbox, browser, event, form):
    before = state(inbox)
    sent = {**form, "event": str(event), "kind": "source", "name": "stripe", "status": "dead", "body": "{}"}

    answers = {name: browser.client.post(path, data=sent) for name, path in forms(inbox)}

    assert {name for name, answer in answers.items() if answer.status_code != 403} == set()
    assert state(inbox) == before


def test_form_is_not_offered_to_one_who_may_not_send_it(signed_in, event):
    offered = {}
    for scopes in (("read", "bodies"), ("read", "bodies", "replay"), ("admin",)):
        browser = signed_in(*scopes)
        found = "".join(browser.get(f"/admin{path}").text for path in pages(event))
        offered[scopes] = {
            name
            for name in ("replay", "bulk_start", "pause", "edit", "mark")
            if {
                "replay": f'action="/admin/events/{event}/replay"',
                "bulk_start": 'action="/admin/bulk"',
                "pause": 'action="/admin/pause"',
                "edit": f'href="/admin/events/{event}/edit"',
                "mark": 'name="state" value="fixed"',
            }[name]
            in found
        }

    assert list(offered.values()) == [
        set(),
        {"replay", "bulk_start", "mark"},
        {"replay", "bulk_start", "mark", "pause", "edit"},
    ]


def test_session_ends_with_its_token(inbox, signed_in):
    browser = signed_in("read")
    assert browser.get("/admin/").status_code == 200

    inbox.connection.execute("DELETE FROM hookonce.api_tokens")

    assert browser.get("/admin/").status_code == 303


def test_form_needs_the_scope_of_the_action_behind_it():
    wrong = {
        page: (NEEDS.get(page), ACTIONS[action].scope)
        for action, (_, page) in WHERE.items()
        if ACTIONS[action].changes
        and page not in {None, "operations"}
        and NEEDS.get(page) != ACTIONS[action].scope
    }

    assert wrong == {}


def test_made_up_token_is_refused_in_words_that_say_what_to_type(inbox):
    answer = inbox.browser().sign_in(token="hko_" + "a" * 43)

    assert answer.status_code == 403
    assert "neither the admin token nor an API token" in answer.text
