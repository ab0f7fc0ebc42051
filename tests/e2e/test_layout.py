"""Every page as it is laid out: at 1280 and 390 pixels, in light and in dark."""

import itertools

import pytest

from tests.e2e.test_pages import PAGES

NUMBERS = itertools.count(1)
HEIGHT = 800
WINDOWS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
CUT = """() => {
  const scrolls = (each) => ['auto', 'scroll'].includes(getComputedStyle(each).overflowX);
  const inScroller = (each) => { for (; each; each = each.parentElement) if (scrolls(each)) return true; };
  const isSeen = (each) => each.checkVisibility({ visibilityProperty: true }) && !each.closest('.unseen, .skip, thead');
  return [...document.querySelectorAll('main *, header *, footer *')]
    .filter((each) => isSeen(each) && !inScroller(each)).filter((each) => {
      const box = each.getBoundingClientRect(), style = getComputedStyle(each);
      const isOutside = box.width && (box.left < -1 || box.right > document.documentElement.clientWidth + 1);
      const isCut = style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis' && !each.matches('svg')
        && each.scrollWidth > each.clientWidth + 1;
      return isOutside || isCut;
    }).map((each) => each.outerHTML.slice(0, 120));
}"""
UNEVEN = """() => [...document.querySelectorAll('tbody tr')]
  .filter((row) => row.checkVisibility() && getComputedStyle(row).display === 'table-row')
  .flatMap((row) => [...row.cells].filter((cell) => cell.rowSpan === 1
    && Math.abs(cell.getBoundingClientRect().bottom - row.getBoundingClientRect().bottom) > 1))
  .map((cell) => cell.outerHTML.slice(0, 120))"""
WRAPPED = """() => [...document.querySelectorAll('.code-line')].filter((each) => each.checkVisibility())
  .filter((each) => each.getBoundingClientRect().height > 1.6 * parseFloat(getComputedStyle(each).fontSize))
  .map((each) => each.textContent)"""
COLLIDING = """() => [...document.querySelectorAll('.axis, .scale')].flatMap((axis) => {
  const labels = [...axis.querySelectorAll('text, span, li')]
    .filter((each) => each.textContent && each.checkVisibility());
  const boxes = labels.map((each) => each.getBoundingClientRect());
  return boxes.flatMap((a, n) => boxes.slice(n + 1).map((b, m) => [a, b, labels[n], labels[n + 1 + m]]))
    .filter(([a, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
    .map(([, , one, other]) => `${one.textContent} / ${other.textContent}`);
})"""

EARLIER = """
UPDATE hookonce.{table}
SET received_at = greatest(received_at - interval '10 minutes', date_trunc('day', received_at, 'UTC'))
WHERE {column} = %s
"""
OLDER = """
INSERT INTO hookonce.failures (event, handler, cycle, attempt, started_at, failed_at, error)
SELECT f.event, handler, 1, n, received_at + n * n / 81.0 * (failed_at - received_at),
       received_at + (n * n / 81.0 + 0.001) * (failed_at - received_at), 'TimeoutError: no answer'
FROM hookonce.failures f JOIN hookonce.events e ON e.id = f.event, generate_series(1, 8) AS n WHERE f.event = %s
"""
NEWEST = """
WITH last AS (DELETE FROM hookonce.failures WHERE event = %s AND traceback IS NOT NULL RETURNING *)
INSERT INTO hookonce.failures (event, handler, cycle, attempt, failed_at, error, issue, release, traceback, key_id)
SELECT event, handler, 1, 9, failed_at, error, issue, release, traceback, key_id FROM last
"""


@pytest.fixture(scope="module")
def failed(inbox):
    """An event that died in a line of a hundred columns after attempts hours apart, and its issue."""
    event_id = f"evt_1Swide{next(NUMBERS)}"
    assert inbox.deliver({"id": event_id, "type": "wide"}).status_code == 200
    inbox.until(f"SELECT status FROM hookonce.event_states WHERE event_id = '{event_id}'", "dead")  # noqa: S608
    (event,) = inbox.connection.execute(
        "SELECT id FROM hookonce.events WHERE event_id = %s", [event_id]
    ).fetchone()
    for table, column in (("events", "id"), ("bodies", "event")):
        inbox.connection.execute(EARLIER.format(table=table, column=column), [event])
    inbox.connection.execute(OLDER, [event])
    inbox.connection.execute(NEWEST, [event])
    inbox.connection.execute(
        "UPDATE hookonce.runs SET attempts = 9, started_at = finished_at - '20 ms'::interval WHERE event = %s",
        [event],
    )
    (issue,) = inbox.connection.execute(
        "SELECT id FROM hookonce.issues WHERE handler = 'shop.wide'"
    ).fetchone()
    yield event, issue
    inbox.buries(event_id)


def found_on(page, paths, *scripts):
    found = {}
    for path in paths:
        page.goto(f"/admin{path}")
        found[path] = [each for script in scripts for each in page.evaluate(script)]
    return {path: each for path, each in found.items() if each}


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_nothing_is_cut_wrapped_or_on_top_of_another(width, scheme, window, failed):
    event, issue = failed
    page = window(width=width, height=HEIGHT, color_scheme=scheme)
    paths = [
        *PAGES,
        f"/events/{event}",
        f"/events/{event}?status=dead",
        f"/events/{event}/edit",
        f"/issues/{issue}",
    ]

    assert found_on(page, paths, CUT, UNEVEN) == {}
    assert found_on(page, [f"/events/{event}", f"/issues/{issue}"], WRAPPED) == {}
    assert found_on(page, ["/", "/?span=7d", *paths[-4:]], COLLIDING) == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/issues/{issue}", "/events/{event}"])
def test_code_of_a_hundred_columns_is_seen_whole(path, scheme, window, failed):
    page = window(height=HEIGHT, color_scheme=scheme)

    page.goto("/admin" + path.format(event=failed[0], issue=failed[1]))

    line = page.locator(".code-line.is-at", has_text="raise ValueError").first
    code = line.locator("xpath=..")
    assert len(line.locator(".lit").text_content().rstrip()) == 100
    assert code.evaluate("pre => pre.scrollWidth <= pre.clientWidth")
    assert (
        code.bounding_box()["width"] > 2 / 3 * line.locator("xpath=ancestor::article").bounding_box()["width"]
    )
    assert line.locator(".k").evaluate("each => getComputedStyle(each).color") != line.evaluate(
        "each => getComputedStyle(each).color"
    )


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_issue_says_what_it_is_without_scrolling(width, scheme, window, failed):
    page = window(width=width, height=HEIGHT, color_scheme=scheme)

    page.goto(f"/admin/issues/{failed[1]}")

    seen = {
        "handler": page.get_by_text("shop.wide").first,
        "place": page.get_by_text("shop.py:").first,
        "error": page.get_by_text("columns in this line").first,
        "code": page.locator(".code-line.is-at").first,
        "trend of the last day": page.locator("figure.trend").nth(0),
        "trend of two weeks": page.locator("figure.trend").nth(1),
        **{
            name: page.get_by_text(name, exact=False).first
            for name in ("Replay", "Fixed", "Ignore", "Discard")
        },
    }
    bottoms = {
        name: round(each.bounding_box()["y"] + each.bounding_box()["height"]) for name, each in seen.items()
    }
    assert {name: bottom for name, bottom in bottoms.items() if bottom > HEIGHT} == {}


def test_bar_of_an_older_attempt_opens_it(window, failed):
    page = window(height=HEIGHT)
    page.goto(f"/admin/events/{failed[0]}")

    page.get_by_text("Older attempts").click()
    page.locator(".waterfall").get_by_role("link", name="Attempt 2").click()

    attempt = page.locator(".attempts li", has_text="Attempt 2")
    assert attempt.is_visible()
    assert attempt.evaluate("each => each.matches(':target')")
