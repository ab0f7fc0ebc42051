from pathlib import Path

import pytest

from hookonce.providers import Reason
from hookonce.receiver.web import problem_details

REFERENCE = (Path(__file__).parents[2] / "docs" / "explanation" / "http.md").read_text("utf-8")


@pytest.mark.parametrize("code", [*Reason, "conflict", "ledger_unavailable", "overloaded", "internal_error"])
def test_reference_explains_every_code_that_senders_get(code):
    assert f"`{code}`" in REFERENCE


@pytest.mark.parametrize("status", sorted(problem_details.TITLES))
def test_reference_names_every_status_of_a_refusal(status):
    assert str(status) in REFERENCE
