import re
from pathlib import Path
from typing import get_args

import pytest

from hookonce.providers import Reason
from hookonce.receiver import vocabulary
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.desk.filters import Status
from tests.support.reference import configuration, metrics, write
from tests.support.reference.vocabulary import OTHERS

ROOT = Path(__file__).parents[2]
CODE = [
    path for each in ("receiver", "jobs", "wsgi.py") for path in [*(ROOT / each).rglob("*.py"), ROOT / each]
]
MENTIONED = re.compile(r"\bHOOKONCE_[A-Z]+(?:_[A-Z]+)*\b")
FOR_TESTS = {"HOOKONCE_FAILPOINT", "HOOKONCE_FAILPOINT_LOG"}
AMONG_US = {"HOOKONCE_HIDDEN_KEYS", "HOOKONCE_DOTENV", "HOOKONCE_INTRODUCED"}
"""What one process of ours tells another."""


@pytest.mark.parametrize("name", write.PAGES)
def test_reference_page_says_what_the_code_says(name):
    assert (write.FOLDER / name).read_text() == write.PAGES[name](), "run: make docs"


def test_page_of_metrics_says_what_a_scrape_says(database_url, redis_url):
    assert (write.FOLDER / write.METRICS).read_text() == metrics.page(database_url, redis_url), (
        "run: make docs"
    )


def test_configuration_begins_with_ten_settings():
    first = configuration.page().split("\n## ")[1]

    keys = re.findall(r"^\| `(\w+)` \| \[", first, re.MULTILINE)
    assert first.startswith("The ten settings that one needs\n")
    assert len(keys) == 10
    assert {"secrets", "database_url", "redis_url", "handlers", "keep_events"} <= set(keys)


def test_every_key_of_the_configuration_is_described():
    assert configuration.undescribed() == []


def test_vocabulary_has_every_status_reason_and_exit_code():
    assert set(vocabulary.REFUSALS) == set(Reason)
    assert set(vocabulary.UNAVAILABLE) == set(OTHERS)
    assert set(vocabulary.EXITS) == {each.name for each in Exit}
    assert set(vocabulary.EVENT_STATUSES) == set(get_args(Status))


def test_vocabulary_names_every_variable_that_the_code_does():
    said = {name for path in CODE if path.is_file() for name in MENTIONED.findall(path.read_text())}

    known = set(MENTIONED.findall(" ".join(vocabulary.VARIABLES)))

    assert said - FOR_TESTS - AMONG_US - known == set()
