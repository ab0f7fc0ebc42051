"""Writes on each page when a test last ran its commands, and with which version: `make docs` after the tests.

What the tests have run they leave in .pytest_cache; a page whose commands were not run keeps the line that it has.
"""

import re

from tests.support.page_commands import DOCS, ROOT, RUNS, blocks

STAMP = re.compile(
    r"\n\*A test last ran these commands on (\d{4}-\d\d-\d\d) with hookonce ([\d.]+) and Python ([\d.]+)\.\*\n\Z"
)


def pages():
    """The pages that have commands which tests run."""
    return [page for page in sorted(DOCS.rglob("*.md")) if any(block.is_run for block in blocks(page))]


def write():
    """Put into each page what was noted of it."""
    for page in pages():
        noted = RUNS / page.relative_to(ROOT).as_posix().replace("/", "-")
        if noted.exists():
            text = STAMP.sub("", page.read_text(encoding="utf-8")).rstrip("\n")
            page.write_text(
                f"{text}\n\n*A test last ran these commands on {noted.read_text()}.*\n", encoding="utf-8"
            )


if __name__ == "__main__":
    write()
