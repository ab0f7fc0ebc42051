"""What pages say of the code and of tests is there; docs/reference/designs.md has all its rows."""

import re

import pytest

from tests.support import pointers
from tests.support.for_each import for_each
from tests.support.pointers import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
ASKED = ROOT / "docs/reference/designs.md"
ROW = re.compile(r"^\| (\d)\.(\d+) \| (.+?) \| (\w+) \| (.*) \|$", re.MULTILINE)
ITEMS = {0: 18, 1: 13, 2: 10, 3: 17, 4: 108}
STATES = {"landed", "partly", "missing", "differently", "background"}


def rows():
    return [
        (int(group), int(n), asked, state, where)
        for group, n, asked, state, where in ROW.findall(ASKED.read_text())
    ]


@for_each([page for page in PAGES if "decisions" not in page.parts])
def test_page_points_to_code_that_is_there(page):
    invented = "/acme/"
    named = [each for each in pointers.pointers(page.read_text()) if invented not in each[0]]

    assert [wrong for each in named if (wrong := pointers.leads_nowhere(*each))] == []


@for_each(PAGES)
def test_page_links_to_pages_and_headings_that_are_there(page):
    assert pointers.broken_links(page) == []


def test_every_page_that_the_program_names_is_there():
    sources = [
        each for room in ("receiver", "jobs", "providers", "hookonce") for each in (ROOT / room).rglob("*.py")
    ]
    named = {(name, each) for each in sources for name in re.findall(r"docs/[\w/.-]+\.md", each.read_text())}

    assert named
    assert [(name, each.name) for name, each in named if not (ROOT / name).is_file()] == []


def test_every_item_of_the_designs_has_its_row_in_order():
    assert [(group, n) for group, n, *_ in rows()] == [
        (group, n) for group, items in ITEMS.items() for n in range(1, items + 1)
    ]


def test_rows_say_how_it_stands_and_what_shows_it():
    for group, n, _, state, where in rows():
        assert state in STATES, f"{group}.{n}"
        shown = pointers.pointers(where) or pointers.LINK.search(where)
        assert shown or state in {"missing", "background"}, f"{group}.{n} points nowhere"
        assert state != "missing" or where, f"{group}.{n} does not say what is missing"


def test_summary_counts_the_rows():
    counted = {state: sum(each[3] == state for each in rows()) for state in STATES}

    (said,) = re.findall(r"^Of 166 items: (.+)\.$", ASKED.read_text(), re.MULTILINE)

    assert {state: int(n) for n, state in re.findall(r"(\d+) (\w+)", said)} == counted


def test_decisions_are_in_force_and_the_code_names_those_that_are_there():
    decisions = {page.name[:4]: page.read_text() for page in (ROOT / "docs/decisions").glob("*.md")}
    folders = ("receiver", "jobs", "hookonce", "providers", "tests")
    named = {
        (file.relative_to(ROOT).as_posix(), number)
        for folder in folders
        for file in (ROOT / folder).rglob("*.py")
        for number in re.findall(r"docs/decisions/(\d{4})", file.read_text())
    }

    assert len(named) > 5
    assert {each for each in named if each[1] not in decisions} == set()
    assert [
        number for number, text in decisions.items() if re.search(r"superseded|amended", text, re.IGNORECASE)
    ] == []
    assert [number for number, text in decisions.items() if not text.startswith(f"# {int(number)}. ")] == []


@pytest.mark.parametrize(
    ("pointer", "wrong"),
    [
        (("receiver/ledger/store.py", "store"), ""),
        (("receiver/ledger/store.py", ""), ""),
        (("receiver/ledger/store.py", "no_such_thing"), "receiver/ledger/store.py: no no_such_thing in it"),
        (("receiver/ledger/shop.py", "store"), "receiver/ledger/shop.py: no such file"),
        (("receiver/ledger/runs/takeover.py", "LEASE_RAN_OUT"), ""),
    ],
)
def test_pointer_that_leads_nowhere_is_told(pointer, wrong):
    assert pointers.leads_nowhere(*pointer) == wrong


def test_link_to_a_heading_that_is_not_there_is_told(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One thing\n\n[a](page.md#one-thing) [b](#another) [c](other.md) [d](https://example.com/x.md)\n"
    )

    assert pointers.broken_links(page) == ["#another", "other.md"]
