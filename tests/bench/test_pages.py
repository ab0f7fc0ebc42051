"""Pages quote what the kept runs found: words, table and picture are written from the same file of results."""

import json
import re
import shutil

import pytest

from bench.report import results, words
from bench.report.figures import EVERY
from tests.support.for_each import for_each
from tests.support.page_commands import DOCS, ROOT

MEASUREMENTS = DOCS / "reference/measurements.md"
PAGES = [
    ROOT / "README.md",
    MEASUREMENTS,
    *(DOCS / f"explanation/{name}.md" for name in ("benchmarks", "scaling", "sixty-lines")),
]
NUMBER = r"\d[\d,.]*|(?i:one|two|three|four|five|six|seven|eight|nine|ten|half|hundred|thousand|million)s?"
UNIT = (
    r"µs|ms|(?:new |due |single )*(?:events?|jobs|duplicates|deliveries|commits)(?:/s| a second)|"
    r"/s|times|seconds|[KMGT]B|bytes|cores"
)
FIGURE = re.compile(
    rf"(?<![\w,.])(?:(?:{NUMBER})\s?(?:{UNIT})\b|twice (?:as|what|the)\b|(?:half|a third|a tenth) of (?:what|\w+'s))"
)
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
CONDITIONS = (
    "two cores",
    "at 50 events a second",
    "1.2 KB",
    "1 GB of shared buffers, 8 GB of WAL",
    "10,000 and 100,000 events a second",
    "100,000/s",
    "10,000/s",
    "1,000/s",
    "2 cores",
    "two seconds each",
    "more than a tenth of a p99",
    "the disk was twice as slow",
    "40 ms of round trip",
)
"""What was asked of a run, or is asked of a reader's machine; a figure that a run found has a mark."""


def plain(page):
    """Return the words of a page: without marked figures, code, the written tables and the tables of other tools."""
    text = page.read_text()
    for begin, end in ((results.BEGIN, results.END), ("seconds until the answer", "\n\nTen attacks")):
        before, found, rest = text.partition(begin)
        text = before + (rest.partition(end)[2] if found else "")
    text = CODE.sub("", words.MARK.sub("", text))
    for phrase in CONDITIONS:
        text = text.replace(phrase, "")
    return text


@for_each(PAGES)
def test_figures_in_words_are_marked_or_conditions_of_the_run(page):
    assert [found[0] for found in FIGURE.finditer(plain(page))] == []


def test_search_for_figures_finds_what_pages_once_said():
    once = (
        "took 3,700 new events/s, one and a half\ntimes Starlette, eight times Flask, 0.43 ms, twice as many"
    )

    found = [each[0] for each in FIGURE.finditer(once)]

    assert found == ["3,700 new events/s", "half\ntimes", "eight times", "0.43 ms", "twice as"]


def test_words_table_and_picture_are_what_the_kept_runs_found():
    pages = results.written(results.kept())

    assert {
        MEASUREMENTS,
        results.PICTURE,
        *(DOCS / f"explanation/{n}.md" for n in ("benchmarks", "scaling")),
    } <= set(pages)
    assert [str(path) for path, text in pages.items() if path.read_text() != text] == []


def test_no_line_begins_with_a_mark_which_would_end_its_paragraph():
    lines = [line for page in DOCS.rglob("*.md") for line in page.read_text().splitlines()]

    assert [line for line in lines if line.lstrip().startswith("<!--=")] == []


def test_no_mark_is_shown_as_code():
    spans = [span[0] for page in DOCS.rglob("*.md") for span in CODE.finditer(page.read_text())]

    assert [span for span in spans if words.MARK.search(span)] == []


def test_words_equal_the_cells_of_the_table():
    rows = [line.split(" | ") for line in MEASUREMENTS.read_text().splitlines() if line.startswith("| ")]
    cells = {row[0].removeprefix("| "): row[1].split(" ")[0] for row in rows if len(row) > 1}
    titles = {figure.name: figure.title for figure in EVERY}

    quoted = [
        (mark["of"], mark["text"])
        for page in DOCS.rglob("*.md")
        for mark in words.MARK.finditer(page.read_text())
        if mark["of"] in titles
    ]

    assert len(quoted) > 50
    assert [each for each in quoted if cells[titles[each[0]]] != each[1]] == []


def test_every_title_names_one_figure():
    titles = [figure.title for figure in EVERY]

    assert [title for title in titles if titles.count(title) > 1] == []


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("rate", "3,245"),
        ("cpu/empty", "0.911"),
        ("1000*cpu/6e5+1000*empty/6e5", "0.965"),
        ("growth_late", "7"),
        ("latest.date", "today"),
        ("growth.commit", "unknown"),
    ],
)
def test_mark_stands_for_a_figure_or_a_sum_of_products(mark, said):
    figures = {"rate": {"value": 3245.0}, "cpu": {"value": 276.0}, "empty": {"value": 303.0}}
    runs = {
        "latest": {"date": "today", "figures": figures},
        "growth": {"figures": {"growth_late": {"value": 7}, "cpu": {"value": 9.0}}},
    }

    assert (
        words.written(f"so <!--={mark}-->old<!--/--> it is", runs) == f"so <!--={mark}-->{said}<!--/--> it is"
    )


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of pages and results, and a run to publish: the kept one, changed."""
    shutil.copytree(results.RESULTS, tmp_path / "results")
    (tmp_path / "README.md").write_text("nothing")
    for path in (results.PAGE, results.PICTURE, DOCS / "explanation/benchmarks.md"):
        copy = tmp_path / "docs" / path.relative_to(DOCS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    for name in ("DOCS", "PAGE", "PICTURE"):
        monkeypatch.setattr(results, name, tmp_path / "docs" / getattr(results, name).relative_to(DOCS))
    monkeypatch.setattr(results, "README", tmp_path / "README.md")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    return tmp_path


def measured(*, core=0.0, steal=0.0, failed=False):
    found = results.kept()["latest"] | {
        "date": "2030-01-01 00:00 UTC",
        "commit": "abcdef12",
        "failed": failed,
    }
    found["figures"]["new_rate"] |= {"value": 8765.0, "rounds": [8765.0]}
    return found | {"others": {"process": "make (4711)", "core": core, "steal": steal}}


def contents(project):
    return {path: path.read_text() for path in project.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"core": 0.0501}, "process make (4711) took 5.0% of a core"),
        ({"steal": 0.0301}, "3.0% of the CPU was stolen"),
        ({"failed": True}, "a scenario failed"),
    ],
)
def test_unfit_run_is_refused_and_pages_keep_the_last_good_one(project, how, said):
    before = contents(project)

    with pytest.raises(results.NotPublished, match=re.escape(said)):
        results.publish(measured(**how), "latest")

    assert contents(project) == before


def test_run_that_lacks_a_quoted_figure_is_refused(project):
    found, before = measured(), contents(project)
    del found["figures"]["new_to_starlette"]

    with pytest.raises(results.NotPublished, match="the run lacks the figure 'new_to_starlette'"):
        results.publish(found, "latest")

    assert contents(project) == before


def test_good_run_changes_words_table_and_picture_alike(project):
    results.publish(measured(core=0.05, steal=0.03), "latest")

    page, picture = results.PAGE.read_text(), results.PICTURE.read_text()
    said = words.MARK.sub(r"\g<text>", (project / "docs/explanation/benchmarks.md").read_text())
    assert "| new events | 8,765 /s | 8,765 … 8,765 | 0.911 |" in page
    assert "8,765 /s · 0.911" in picture
    assert "hookonce took in 8,765 new events/s" in said
    assert "2030-01-01 00:00 UTC at commit abcdef12" in said
    assert "another process took 5.0% of a core at most, and 3.0% of the CPU was stolen at most" in page
    assert json.loads((project / "results/latest.json").read_text())["commit"] == "abcdef12"
