import re
from datetime import timedelta

from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.handshake_secrets import keep
from hookonce.receiver.ledger.rejected import add_secret_uses
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.dashboard.conftest import SECRET
from tests.support.outcomes import end_events


def test_source_shows_its_url_its_setup_and_no_secret(browser):
    page = browser.get("/admin/sources/stripe").text

    assert "https://hooks.example.com/hooks/stripe" in page
    assert 'href="https://dashboard.stripe.com/webhooks"' in page
    assert "none yet" in page
    assert "<code>env:SECRET</code>" in page
    assert SECRET not in page


def test_page_of_a_source_that_is_not_configured_says_so(browser):
    assert browser.get("/admin/sources/nowhere").status_code == 404


def test_source_shows_its_last_event_and_its_secrets_in_use(inbox, browser):
    inbox.store("evt_1")
    add_secret_uses(inbox.connection, {("stripe", 2): 7})
    keep(inbox.connection, "github", "a secret that was handed out", OFF)

    page = browser.get("/admin/sources/stripe").text
    handed = browser.get("/admin/sources/github").text

    assert "1 accepted" in page
    assert "<code>secret 2, removed since</code>" in page
    assert "7 deliveries, last" in page
    assert "a secret that was handed out" not in handed


def test_source_is_paused_and_resumed_and_rung_for(inbox, browser, redis_url):
    browser.get("/admin/sources")

    browser.post("/admin/pause", kind="source", name="stripe")
    paused = browser.get("/admin/sources").text
    browser.post("/admin/resume", kind="source", name="stripe")

    assert 'class="status is-paused"' in paused
    assert inbox.rows("SELECT count(*) FROM hookonce.pauses") == [(0,)]
    assert [row[1:] for row in inbox.audit()[1:]] == [("pause", "source stripe"), ("resume", "source stripe")]
    with connect(redis_url) as client:
        assert WorkQueue(client).pending() == 1


def test_page_of_a_source_shows_and_resumes_what_is_paused_of_it(inbox, browser):
    browser.get("/admin/sources")

    browser.post("/admin/pause", kind="type", name="stripe:invoice.*")
    page = browser.get("/admin/sources/stripe").text
    other = browser.get("/admin/sources/github").text
    resumed = browser.post("/admin/resume", kind="type", name="stripe:invoice.*", back="source")

    assert "type <b>stripe:invoice.*</b>" in page
    assert "invoice.*" not in other
    assert resumed.headers["Location"].endswith("/admin/sources/stripe")
    assert inbox.rows("SELECT count(*) FROM hookonce.pauses") == [(0,)]


def test_no_handler_is_shown_before_a_worker_names_one(browser):
    assert "No handlers yet" in browser.get("/admin/handlers").text


def test_handler_shows_patterns_and_how_its_runs_went(inbox, browser):
    register_handlers(
        inbox.connection, [("shop.credit", "stripe", "invoice.*", 3, timedelta(seconds=30), None)]
    )
    for number in inbox.store("evt_1", "evt_2"):
        inbox.die(number, handler="shop.credit")
    (done,) = inbox.store("evt_3")
    end_events(inbox.connection, "done", [done], handler="shop.credit", attempts=2)
    inbox.connection.execute(
        "UPDATE hookonce.runs SET started_at = finished_at - interval '4 s' WHERE event = %s", [done]
    )

    page = browser.get("/admin/handlers").text

    assert "stripe <code>invoice.*</code>" in page
    assert re.search('data-label="runs"><a href="[^"]+handler=shop.credit">3<', page)
    assert 'data-label="failed attempts">87.5 %<' in page
    assert 'data-label="p50">2.0 s<' in page
    assert 'data-label="p99">4.0 s<' in page


def test_handler_of_no_worker_is_shown_and_can_be_paused(inbox, browser):
    inbox.die(*inbox.store("evt_1"), handler="old <b>handler")

    page = browser.get("/admin/handlers").text
    browser.post("/admin/pause", kind="handler", name="old <b>handler")

    assert "no worker has registered it" in page
    assert "old <b>" not in page
    assert inbox.rows("SELECT kind, name FROM hookonce.pauses") == [("handler", "old <b>handler")]
