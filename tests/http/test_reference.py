from pathlib import Path

from hookonce.providers import Reason
from hookonce.receiver.web import problem_details
from tests.support.for_each import for_each

REFERENCE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text("utf-8")


@for_each([*Reason, "conflict", "ledger_unavailable", "overloaded", "internal_error"])
def test_reference_explains_every_code_that_senders_get(code):
    assert f"`{code}`" in REFERENCE


@for_each(sorted(problem_details.TITLES))
def test_reference_names_every_status_of_a_refusal(status):
    assert str(status) in REFERENCE
