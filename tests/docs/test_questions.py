"""Ten questions of a newcomer: each is answered within two clicks of the documents' front page, and of the README."""

import re

import pytest

from tests.support.page_commands import DOCS, ROOT

LINK = re.compile(r"\]\((?!https?:)([^)#\s]+\.md)(?:#[\w-]+)?\)")
ANSWERS = {
    "Is my sender there, and what does it sign?": ("providers.md", "`paddle_billing`"),
    "What has to run in production?": ("how-to/production.md", "PostgreSQL 14 or newer, Redis 7.0 or newer"),
    "Do my Django models commit with the event?": ("how-to/django.md", "together with the run's `done`"),
    "What becomes of a handler that raises?": ("how-to/handlers.md", "is dead after `attempts` (10)"),
    "Are events handled in order?": ("explanation/guarantees.md", "**Order.**"),
    "May a card be charged twice?": ("how-to/steps.md", "done once for its event"),
    "How many events a second, on how much disk?": ("explanation/scaling.md", "GB per million events"),
    "How does a webhook get to my laptop?": ("how-to/tunnels.md", "stripe listen --forward-to"),
    "How do I test a handler?": ("how-to/testing.md", "handled_once(paid"),
    "Can personal data be left out, or sealed?": ("explanation/data-protection.md", "redact = ["),
}


def reached(page, clicks):
    """The pages that are so many clicks away from one, or fewer."""
    found = {page}
    for _ in range(clicks):
        found |= {
            (each.parent / link).resolve()
            for each in found
            if each.is_file()
            for link in LINK.findall(each.read_text())
        }
    return found


@pytest.mark.parametrize("front", [DOCS / "index.md", ROOT / "README.md"], ids=["index", "README"])
def test_questions_of_a_newcomer_are_answered_in_two_clicks(front):
    known = reached(front, 2)

    missing = [
        question
        for question, (page, said) in ANSWERS.items()
        if DOCS / page not in known or said not in (DOCS / page).read_text()
    ]

    assert missing == []
