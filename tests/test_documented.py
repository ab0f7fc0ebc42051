from datetime import timedelta

import documented
import pytest

from providers.kit.registry import names


def test_page_of_senders_says_what_the_modules_say():
    assert documented.PAGE.read_text() == documented.page(), "run: make docs"


def test_readme_names_the_senders_there_are():
    readme = documented.README.read_text()

    assert readme == documented.with_part(readme), "run: make docs"


@pytest.mark.parametrize("name", names())
def test_sender_has_evidence_of_a_known_kind(name):
    assert documented.evidence(name) in documented.EVIDENCE


@pytest.mark.parametrize("name", names())
def test_sender_says_in_a_line_what_is_verified(name):
    assert documented.provider_of(name).summary


def test_sender_is_either_there_or_left_out():
    left_out = {path.stem.replace("-", "_") for path in documented.LEFT_OUT.glob("*.txt")}

    assert left_out
    assert not left_out & set(names())


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (None, ""),
        (timedelta(seconds=90), "1.5 min"),
        (timedelta(minutes=90), "90 min"),
        (timedelta(hours=2), "2 hours"),
        (timedelta(days=7), "7 days"),
    ],
)
def test_span_of_time_is_written_in_a_unit_that_it_is_a_few_of(time, said):
    assert documented.span(time) == said


def test_sender_without_deliveries_has_no_evidence_and_no_error():
    assert documented.evidence("nobody") == documented.NONE
