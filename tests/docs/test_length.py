"""Pages that people write have a bound together: a page for a capability raises it, another is paid for elsewhere."""

from tests.support.page_commands import DOCS

MOST_WORDS = 40_000
LOOKED_UP = {"decisions", "reference", "providers.md"}


def test_hand_written_pages_are_read_in_an_afternoon():
    pages = [page for page in DOCS.rglob("*.md") if not LOOKED_UP & set(page.relative_to(DOCS).parts)]

    counted = {page.relative_to(DOCS).as_posix(): len(page.read_text().split()) for page in pages}

    longest = sorted(counted.items(), key=lambda each: -each[1])
    assert sum(counted.values()) <= MOST_WORDS, f"{sum(counted.values())} words; the longest: {longest[:10]}"
