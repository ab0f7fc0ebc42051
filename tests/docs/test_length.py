"""Pages that people write have a bound together: a new one is paid for by telling something else once."""

import re

from tests.support.page_commands import DOCS

MOST_WORDS = 36_000
LOOKED_UP = ("decisions", "reference")
NOT_PROSE = re.compile(
    r"^```.*?^```$|<!-- figures.*?<!-- end of figures -->|<!--.*?-->|(?<=\])\([^)]*\)",
    re.DOTALL | re.MULTILINE,
)
"""Code, which tests run; figures, which `make bench` writes; comments; where links lead."""


def words(page):
    return len(NOT_PROSE.sub(" ", page.read_text()).split())


def test_hand_written_pages_are_read_in_an_afternoon():
    pages = [
        page
        for page in DOCS.rglob("*.md")
        if not set(page.relative_to(DOCS).parts) & {*LOOKED_UP, "providers.md"}
    ]

    counted = {page.relative_to(DOCS).as_posix(): words(page) for page in pages}

    longest = sorted(counted.items(), key=lambda each: -each[1])
    assert sum(counted.values()) <= MOST_WORDS, f"{sum(counted.values())} words; the longest: {longest[:10]}"
