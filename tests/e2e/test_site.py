"""The documents' site in a browser: the table of senders can be searched."""

import re
from pathlib import Path

import pytest

from tests.e2e.conftest import chromium

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra e2e")
markdown = pytest.importorskip("markdown", reason="needs the extra docs")

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def senders(tmp_path):
    """The page of senders as the site has it, without its theme, in a browser."""
    page = re.sub(r"<div class", '<div markdown="0" class', (DOCS / "providers.md").read_text())
    html = markdown.markdown(page, extensions=["tables", "md_in_html"])
    script = (DOCS / "assets" / "search-table.js").read_text()
    (tmp_path / "page.html").write_text(f"<meta charset=utf-8><body>{html}<script>{script}</script>")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        shown = browser.new_page()
        shown.goto(f"file://{tmp_path}/page.html")
        yield shown
        browser.close()


def visible(page):
    return page.locator("table").first.locator("tbody tr:visible td:first-child").all_inner_texts()


def test_senders_are_searched_by_every_word(senders):
    field = senders.get_by_label("Search senders")

    assert len(visible(senders)) > 200
    field.fill("stripe")
    assert "stripe" in visible(senders)
    assert "github" not in visible(senders)
    field.fill("no such sender")
    assert visible(senders) == []
    field.fill("")
    assert len(visible(senders)) > 200
