"""Questions of a newcomer: each is answered within two clicks of the documents' front page, and of the README."""

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
    "How do I erase what is known of a person?": (
        "explanation/data-protection.md",
        "hookonce events erase",
    ),
    "How do I rotate a signing secret?": ("how-to/rotate-a-secret.md", "SECRET__"),
    "What happens while PostgreSQL is down?": ("how-to/outage.md", "senders got 503"),
    "Can a handler run twice for one event?": ("how-to/handlers-that-run-twice.md", "idempotency_key"),
    "How do I take a sender that is not there?": ("adding-a-provider.md", "hookonce new provider"),
    "Why did an event fail?": ("how-to/handlers.md", "hookonce events show"),
    "How do I run it in Kubernetes?": ("how-to/kubernetes.md", "kubectl apply"),
    "How do I get to the next version?": ("how-to/upgrade.md", "hookonce db upgrade"),
    "How fast is it?": ("explanation/benchmarks.md", "events/s"),
    "How do two accounts of Stripe, or one for each customer, deliver?": (
        "how-to/source-choices.md",
        "`/hooks/stripe-eu` and `/hooks/stripe-us`",
    ),
    "How long is what kept?": ("reference/tables.md", "for how long"),
    "How do I replay?": ("how-to/replay.md", "hookonce replay"),
    "Does it run without Redis?": ("how-to/production.md", "Redis is required"),
    "Does it run on a managed PostgreSQL, behind PgBouncer?": ("explanation/scaling.md", "?pgbouncer=true"),
    "Does it write to Slack?": ("how-to/alerts.md", "[alerts.slack]"),
    "How do I mount it in my Flask application?": ("how-to/flask.md", "import hookonce.flask"),
    "How do I mount it in my FastAPI application?": ("how-to/fastapi.md", "import hookonce.fastapi"),
    "What is different from Convoy or Svix?": ("../README.md", "Svix Ingest"),
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
        if (DOCS / page).resolve() not in known or said not in (DOCS / page).read_text()
    ]

    assert missing == []
