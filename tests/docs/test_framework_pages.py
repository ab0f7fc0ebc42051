"""The code on the pages about Django, Flask and FastAPI is that of their examples, which others run."""

import re

from tests.support.applications import EXAMPLES
from tests.support.for_each import for_each
from tests.support.page_commands import DOCS

HOW_TO = DOCS / "how-to"


@for_each(["django", "flask", "fastapi"])
def test_code_of_a_page_is_that_of_its_example(name):
    files = [path for path in (EXAMPLES / name).rglob("*") if path.suffix in {".py", ".toml"}]
    known = {bare(line) for path in files for line in path.read_text().splitlines()}
    page = (HOW_TO / f"{name}.md").read_text()

    blocks = re.findall(r"^```(?:python|toml)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)

    assert blocks
    for block in blocks:
        assert {bare(line) for line in block.splitlines()} <= known


def bare(line):
    """A line without what is another's matter: its indentation, its comma, its mark."""
    return line.removesuffix("# hookonce").strip().removesuffix(",")
