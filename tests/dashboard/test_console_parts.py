"""What pages are made of: where alerts lead, a source's health, a chart that is stacked, code in a text."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.dashboard.charts import SPANS, Table, chart, round_above
from hookonce.receiver.dashboard.overview import LAYERS
from hookonce.receiver.dashboard.source_pages.source_health import Signs, health
from hookonce.receiver.dashboard.template_filters import coded
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.stats.activity import Count
from hookonce.receiver.source import Source

NOW = datetime(2026, 1, 5, 12, 7, 30, tzinfo=UTC)
STRIPE = Source("stripe", load("stripe", (), None), ("whsec_x",), references=("env:STRIPE_SECRET",))
HOUR = timedelta(hours=1)


def signs(**changes):
    kept = {
        "last": {"stripe": NOW - timedelta(minutes=2)},
        "usual_gap": {"stripe": timedelta(minutes=3)},
        "failed": {},
        "taken": {},
        "oldest_due": {},
        "alerts": [],
        "paused": set(),
        "handed": set(),
    }
    return Signs(**(kept | changes))


def alert(kind, subject="stripe", detail=""):
    return Alert(id=1, kind=kind, subject=subject, detail=detail, since=NOW, ended_at=None)


@pytest.mark.parametrize(
    ("changes", "mark", "why"),
    [
        ({}, "ok", "usually one every 3 min"),
        ({"last": {}}, "new", "no events yet"),
        ({"last": {"stripe": NOW - 2 * HOUR}}, "quiet", "nothing for 2 h; usually one every 3 min"),
        ({"last": {"stripe": NOW - timedelta(minutes=50)}}, "ok", "usually"),
        (
            {"failed": {"stripe": 5}, "taken": {"stripe": 90}},
            "trouble",
            "5 deliveries within the hour failed",
        ),
        ({"failed": {"stripe": 1}, "taken": {"stripe": 90}}, "ok", "usually"),
        ({"failed": {"stripe": 1}}, "trouble", "1 delivery within the hour failed"),
        ({"oldest_due": {"stripe": 90.0}}, "trouble", "due for 1 min 30 s"),
        ({"alerts": [alert("dead_runs")]}, "trouble", "dead runs"),
        ({"alerts": [alert("source_silent")]}, "trouble", "nothing for 2 min"),
        ({"alerts": [alert("dead_runs", "github")]}, "ok", "usually"),
        ({"paused": {"stripe"}, "failed": {"stripe": 9}}, "paused", "runs wait"),
    ],
)
def test_health_is_the_worst_that_fits(changes, mark, why):
    found = health(STRIPE, signs(**changes), NOW)

    assert found.mark == mark
    assert why in found.why
    assert bool(found.to_do) == (mark != "ok")


def test_source_without_its_secret_is_told_which_to_set():
    bare = Source("stripe", STRIPE.provider, (), references=("env:STRIPE_SECRET",))

    assert health(bare, signs(), NOW).to_do == "Set STRIPE_SECRET, and restart"


@pytest.mark.parametrize(
    ("number", "above"),
    [(0, 2), (2, 2), (3, 4), (5, 6), (7, 10), (10, 10), (11, 20), (999, 1000), (1001, 2000)],
)
def test_scale_is_a_round_number_that_can_be_halved(number, above):
    assert round_above(number) == above


def test_stack_adds_up_and_fits_its_scale():
    begins = SPANS["1h"].begins(NOW)
    kinds = ("accepted", *LAYERS)
    table = Table([Count(begins[3], "stripe", kind, n) for n, kind in enumerate(kinds, 5)], begins)

    made = chart({kind: table.counts(kind) for kind in kinds}, begins, line="accepted")

    (bar,) = made.bars
    assert made.top == 40
    assert made.totals == {"accepted": 5, "done": 6, "ignored": 7, "dead": 8, "rejected": 9}
    assert sum(layer.height for layer in bar.layers) == pytest.approx(100 * (6 + 7 + 8 + 9) / 40)
    assert [layer.y + layer.height for layer in bar.layers[1:]] == pytest.approx(
        [each.y for each in bar.layers[:-1]]
    )
    assert bar.title == "2026-01-05 11:11 UTC: 5 accepted, 6 done, 7 ignored, 8 dead, 9 rejected"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("see `a <b>` now", "see <code>a &lt;b&gt;</code> now"),
        ("one ` alone", "one ` alone"),
        ("<script>", "&lt;script&gt;"),
    ],
)
def test_backticks_become_code_and_the_rest_stays_text(text, html):
    assert str(coded(text)) == html


def test_alerts_lead_to_where_something_can_be_done(inbox, browser):
    for kind, subject in (("dead_runs", "stripe"), ("source_silent", "github"), ("redis_away", "redis")):
        inbox.connection.execute(
            "INSERT INTO hookonce.alerts (kind, subject, detail) VALUES (%s, %s, 'see `hookonce x`')",
            [kind, subject],
        )

    page = browser.get("/admin/").text
    links = re.findall(r'<article class="notice is-bad">.*?<a [^>]*href="([^"]+)">', page, re.DOTALL)

    assert [each.replace("&amp;", "&") for each in links] == [
        "/admin/events?status=dead&source=stripe",
        "/admin/sources/github",
        "/admin/",
    ]
    assert "`" not in page
    assert [browser.get(each.replace("&amp;", "&")).status_code for each in links] == [200, 200, 200]


def test_empty_inbox_tells_url_secret_and_what_to_try(browser):
    page = browser.get("/admin/").text

    assert "https://hooks.example.com/hooks/stripe" in page
    assert "<code>SECRET or OLD</code>" in page
    assert "hookonce trigger stripe" in page
