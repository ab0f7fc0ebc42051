"""What axe-core finds on every page: nothing, in light on a wide screen, in dark on a phone; others try the others."""

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
    found = page.evaluate("tags => axe.run(document, {runOnly: tags, resultTypes: ['violations']})", TAGS)
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary'][:200]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@pytest.fixture(scope="module")
def paths(inbox):
    """The paths of all pages, those of an event that died, of one that is done, of a refused delivery and a search."""
    begin = f"evt_1Saxe{next(NUMBERS)}_"
    inbox.breaks()
    inbox.invoice(f"{begin}dead", account="acct_1")
    inbox.until(f"SELECT status FROM hookonce.event_states WHERE event_id = '{begin}dead'", "dead")  # noqa: S608
    inbox.mends()
    inbox.invoice(f"{begin}done")
    inbox.until(f"SELECT status FROM hookonce.event_states WHERE event_id = '{begin}done'", "done")  # noqa: S608
    ids = inbox.connection.execute(
        "SELECT id FROM hookonce.event_states WHERE starts_with(event_id, %s)", [begin]
    ).fetchall()
    (issue,) = inbox.connection.execute("SELECT id FROM hookonce.issues ORDER BY id LIMIT 1").fetchone()
    inbox.deliver({"id": "evt_axe"}, headers={"stripe-signature": "t=1,v1=00"})
    inbox.until("SELECT count(*) > 0 FROM hookonce.rejected", expected=True)
    (refused,) = inbox.connection.execute("SELECT max(id) FROM hookonce.rejected").fetchone()
    yield [
        *PAGES,
        "/events?status=done&view=Mine",
        f"/events?body=$.id={begin}done",
        *(f"/events/{number}{page}" for (number,) in ids for page in ("", "/diff", "/edit")),
        f"/rejected/{refused}",
        f"/issues/{issue}",
    ]
    inbox.buries(begin)


@pytest.fixture
def audited(window):
    """A function that makes a window with axe on each of its pages."""

    def make(**options):
        page = window(**options)
        page.context.add_init_script(AXE)
        return page

    return make


@pytest.mark.parametrize(
    ("width", "scheme"), [pytest.param(1280, "light", marks=pytest.mark.long), (390, "dark")]
)
def test_axe_finds_nothing(paths, audited, scheme, width):
    require_nothing_is_found(paths, audited(width=width, color_scheme=scheme))


def require_nothing_is_found(paths, page):
    found = {}
    for path in paths:
        page.goto(f"/admin{path}")
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        found[path] = violations(page)

    assert {path: each for path, each in found.items() if each} == {}


def test_axe_finds_a_mistake_that_is_planted(audited):
    page = audited()
    page.goto("/admin/")
    page.evaluate("document.querySelector('main').append(document.createElement('input'))")

    assert any(each.startswith("label: <input>") for each in violations(page))


def test_axe_finds_nothing_in_a_search_that_was_stopped(audited, paths):  # noqa: ARG001  the list has events
    page = audited()
    page.goto("/admin/events")
    page.evaluate(
        "row => document.querySelector('table').insertAdjacentHTML('beforeend', row)",
        "<tbody><tr><td colspan='7'>Searched back to today, 4: <a href='?before=1'>continue</a></td></tr></tbody>",
    )

    assert violations(page) == []
