import time
from datetime import timedelta

import pytest

from hookonce.receiver.ledger.database.connections import LedgerUnavailable

POLICY = {
    "default-src": "'none'",
    "style-src": "'self'",
    "script-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}


@pytest.mark.parametrize(
    "path", ["/admin/", "/admin/docs", "/admin/sign-in", "/admin/nothing", "/admin/static/admin.css"]
)
def test_every_answer_forbids_what_is_not_ours(browser, path):
    headers = browser.get(path).headers

    assert dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; ")) == POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == (
        "no-store" if "static" not in path else "public, max-age=31536000, immutable"
    )


def test_pages_have_no_inline_style_script_or_handler(browser):
    page = browser.get("/admin/").text

    assert "<style" not in page
    assert " style=" not in page
    assert page.count("<script") == page.count("<script src=")
    assert " on" + "click" not in page


def test_unknown_page_is_told_in_the_pages_own_style(browser):
    page = browser.get("/admin/no/such/page")

    assert page.status_code == 404
    assert "There is no such page" in page.text


def test_page_says_that_the_ledger_is_away(browser, monkeypatch):
    def away(*_, **__):
        raise LedgerUnavailable("PostgreSQL does not answer")

    monkeypatch.setattr("hookonce.receiver.dashboard.blueprint.connections.connect", away)

    page = browser.get("/admin/")

    assert page.status_code == 503
    assert "The ledger does not answer" in page.text


def test_form_that_is_too_long_is_refused(browser):
    browser.get("/admin/")

    assert browser.post("/admin/sign-out", more="x" * 100_000).status_code == 413


def test_form_that_drips_in_is_refused(inbox, monkeypatch):
    class Drip:
        def read(self, _size):
            time.sleep(0.02)
            return b"x"

    monkeypatch.setattr("hookonce.receiver.web.http.limits.BODY_TIMEOUT", timedelta(seconds=0.1))
    client = inbox.browser().client

    dripping = {"wsgi.input": Drip(), "CONTENT_LENGTH": "60000"}
    answer = client.post("/admin/sign-in", environ_overrides=dripping)

    assert answer.status_code == 400
