"""A page with commands says when a test last ran them, and with which version."""

from datetime import UTC, date, datetime

from tests.support.for_each import for_each
from tests.support.page_commands import DOCS
from tests.support.page_stamps import STAMP, pages


@for_each(pages)
def test_page_says_when_its_commands_were_last_run(page):
    found = STAMP.search(page.read_text())

    assert found, f"run its test, then `make docs`: {page.relative_to(DOCS)}"
    assert date(2026, 1, 1) < date.fromisoformat(found[1]) <= datetime.now(UTC).date()
