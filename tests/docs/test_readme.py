import re
from pathlib import Path

from tests.support.for_each import for_each

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks():
    """The README's shell blocks, in order: five commands (.ci/try_package.py runs them), then two make targets."""
    return re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_readme_has_the_two_commands_of_a_clone():
    assert [line.split("  ")[0] for line in blocks()[4].splitlines()] == ["make demo", "make test"]


def test_readme_is_read_in_a_few_minutes():
    assert len(README.splitlines()) <= 90
    assert len(README.split()) <= 900


@for_each(re.findall(r"\]\((?!https?:)([^)#]+)\)", README))
def test_readme_links_to_what_is_there(link):
    assert (ROOT / link).exists()
