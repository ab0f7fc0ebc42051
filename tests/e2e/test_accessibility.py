"""What axe-core finds on every page: nothing, in both schemes, on a wide screen and on a phone."""

import gzip
import itertools
from pathlib import Path

import pytest

from tests.e2e.test_pages import PAGES

AXE = gzip.decompress((Path(__file__).parent / "axe" / "axe.min.js.gz").read_bytes()).decode()
NUMBERS = itertools.count(1)
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
    begin = f"evt_1Saxe{next(NUMBERS)}_"
    inbox.breaks()
    inbox.invoice(f"{begin}dead", account="acct_1")
    inbox.until(f"SELECT status FROM hookonce.events WHERE event_id = '{begin}dead'", "dead")  # noqa: S608
    inbox.mends()
    inbox.invoice(f"{begin}done")
    inbox.until(f"SELECT status FROM hookonce.events WHERE event_id = '{begin}done'", "done")  # noqa: S608
    ids = ledger.execute("SELECT id FROM hookonce.events WHERE starts_with(event_id, %s)", [begin]).fetchall()
    inbox.deliver({"id": "evt_axe"}, headers={"stripe-signature": "t=1,v1=00"})
    inbox.until("SELECT count(*) > 0 FROM hookonce.rejected", expected=True)
    (refused,) = ledger.execute("SELECT max(id) FROM hookonce.rejected").fetchone()
    yield [
        *PAGES,
        "/events?status=done&view=Mine",
        f"/events?body=$.id={begin}done",
        *(f"/events/{number}" for (number,) in ids),
        f"/rejected/{refused}",
    ]
    inbox.buries(begin)


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
