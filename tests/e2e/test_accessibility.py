"""What axe-core finds on every page: nothing, in both schemes, on a wide screen and on a phone."""

import gzip
from pathlib import Path

import pytest

from tests.e2e.test_pages import PAGES

AXE = gzip.decompress((Path(__file__).parent / "axe" / "axe.min.js.gz").read_bytes()).decode()
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page):
    """Return what axe finds, one line each."""
    page.evaluate(AXE)
    found = page.evaluate("tags => axe.run(document, {runOnly: tags})", TAGS)
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary'][:200]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@pytest.fixture
def paths(inbox, ledger):
    """The paths of all pages, those of an event that died, of one that is done, of a refused delivery and a search."""
    inbox.breaks()
    inbox.invoice("evt_1Saxe_dead", account="acct_1")
    inbox.until("SELECT status FROM hookonce.events WHERE event_id = 'evt_1Saxe_dead'", "dead")
    inbox.mends()
    inbox.invoice("evt_1Saxe")
    inbox.until("SELECT status FROM hookonce.events WHERE event_id = 'evt_1Saxe'", "done")
    ids = [
        row[0] for row in ledger.execute("SELECT id FROM hookonce.events WHERE event_id LIKE 'evt_1Saxe%'")
    ]
    return [
        *PAGES,
        "/sources/stripe",
        "/events?status=done&view=Mine",
        "/events?body=$.id=evt_1Saxe",
        *(f"/events/{number}" for number in ids),
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(paths, window, scheme, width):
    page = window(width=width, color_scheme=scheme)

    found = {}
    for path in paths:
        page.goto(f"/admin{path}")
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        found[path] = violations(page)

    assert {path: each for path, each in found.items() if each} == {}


def test_axe_finds_a_mistake_that_is_planted(page):
    page.goto("/admin/")
    page.evaluate("document.querySelector('main').append(document.createElement('input'))")

    assert any(each.startswith("label: <input>") for each in violations(page))
