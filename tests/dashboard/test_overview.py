import re
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.receiver.dashboard.charts import SPANS, Table, chart
from hookonce.receiver.ledger.stats.activity import Count, add
from hookonce.receiver.redis.client import connect

NOW = datetime(2026, 1, 5, 12, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "path", ["/admin/", "/admin/?span=24h", "/admin/?span=7d&source=stripe", "/admin/?span=x"]
)
def test_overview_of_an_empty_inbox_names_its_sources(browser, path):
    page = browser.get(path)

    assert page.status_code == 200
    assert "stripe" in page.text
    assert "none due" in page.text


def test_overview_counts_what_came_and_what_waits(inbox, browser):
    inbox.store("evt_1", "evt_2")
    (dead,) = inbox.store("evt_3", source="github")
    inbox.die(dead)

    page = browser.get("/admin/").text

    assert "accepted: 3 in all" in page
    assert "dead: 1 in all" in page
    assert "2 due now" in page


def test_overview_says_what_has_become_of_all_events(inbox, browser):
    stored = inbox.store("evt_1", "evt_2", "evt_3", "evt_4", "evt_5")
    inbox.die(stored[0])
    inbox.end(stored[1:3], "ignored")
    inbox.end(stored[3:4], "done")

    page = browser.get("/admin/").text

    table = page[page.index("in the ledger now, by status") :]
    row = table[: table.index("</tr>", table.index("<tbody>"))]
    cells = re.findall(r'data-label="(\w+)">(?:<a [^>]*>)?(\d+)', row)
    kept = {label: int(number) for label, number in cells if number != "0"}
    assert kept == {"events": 5, "done": 1, "dead": 1, "ignored": 2, "received": 1}
    assert kept.pop("events") == sum(kept.values())


def test_figures_of_each_source_and_of_all_add_up(inbox, browser):
    stored = inbox.store("evt_1", "evt_2", "evt_3")
    inbox.die(stored[0])
    inbox.end(stored[1:2], "ignored")
    inbox.end(inbox.store("evt_4", source="github"), "done")
    add(
        inbox.connection,
        {("stripe", "duplicate"): 7, ("stripe", "rejected.stale"): 5, ("", "rejected.bad_body"): 1},
    )

    page = browser.get("/admin/").text

    table = page[page.index("By source") : page.index("in the ledger now")]
    rows = [re.findall(r'data-label="(\w+)">(\d+)', row) for row in table.split("</tr>")[1:-1]]
    figures = [{label: int(number) for label, number in row} for row in rows]
    assert len(figures) == 4
    for each in figures:
        assert each["received"] == each["new"] + each["repeated"] + each["rejected"]
        assert each["ended"] == each["done"] + each["ignored"] + each["dead"]
    assert figures[-1] == {label: sum(each[label] for each in figures[:-1]) for label in figures[-1]}
    assert (figures[-1]["received"], figures[-1]["ended"]) == (17, 3)


def test_overview_can_be_of_one_source(inbox, browser):
    inbox.store("evt_1", "evt_2")
    inbox.store("evt_3", source="github")

    assert "accepted: 1 in all" in browser.get("/admin/?source=github").text


def test_overview_counts_workers_that_are_alive(browser, redis_url):
    with connect(redis_url) as client:
        client.sadd("rq:workers:hookonce", "rq:worker:alive", "rq:worker:gone")
        client.hset("rq:worker:alive", "state", "idle")

        page = browser.get("/admin/").text

        client.delete("rq:workers:hookonce", "rq:worker:alive")
    assert '<span class="label">Workers alive</span><strong>1</strong>' in page


def test_overview_refreshes_only_its_living_part(browser):
    page = browser.get("/admin/", **{"HX-Request": "true"}).text

    assert 'hx-trigger="every 5s"' in page
    assert "<html" not in page


@pytest.mark.parametrize("name", SPANS)
def test_buckets_end_with_the_one_that_now_is_in(name):
    begins = SPANS[name].begins(NOW)

    assert len(begins) == SPANS[name].buckets
    assert begins[-1] <= NOW < begins[-1] + SPANS[name].bucket


def test_chart_scales_to_its_highest_bar_and_shows_few_beside_many():
    begins = [NOW - timedelta(minutes=n) for n in (3, 2, 1)]
    table = Table([Count(begins[0], "a", "done", 1), Count(begins[2], "b", "done", 1000)], begins)

    drawn = chart({"done": table.counts("done")}, begins)

    assert [(bar.x, bar.layers[0].height) for bar in drawn.bars] == [(1, 1.5), (21, 100.0)]
    assert drawn.totals == {"done": 1001}
    assert table.counts("done", "a") == [1, 0, 0]
