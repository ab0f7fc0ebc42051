"""A ledger whose forwards are made of a configuration, worked in the test's process."""

import json

from hookonce.jobs.configured import forwards
from hookonce.receiver.config.settings import load_settings
from tests.support.inbox import OPEN
from tests.support.waiting import until

SECRET = "whsec_" + "c2VjcmV0IG9mIGEgZm9yd2FyZCB0aGF0IGlzIGxvbmc="


def configured(inbox, tmp_path, text, **environ):
    """Have an inbox work by a configuration, `[sources.stripe]` included."""
    file = tmp_path / "hookonce.toml"
    file.write_text(f'[sources.stripe]\nsecrets = ["env:STRIPE"]\n{text}')
    old = inbox.settings
    inbox.settings = load_settings(
        {
            "DATABASE_URL": old.database_url,
            "REDIS_URL": old.redis_url,
            "HOOKONCE_CONFIG": str(file),
            "STRIPE": "whsec_test",
            "FORWARD_SECRET": SECRET,
            **environ,
        }
    )
    forwards.register(inbox.registry, inbox.settings)
    return inbox


def forward(to, **options):
    """Return the table of a forward called `out`."""
    told = {"from": "stripe", "to": to, **options}
    return "[forwards.out]\n" + "\n".join(f"{name} = {json.dumps(value)}" for name, value in told.items())


def work(inbox, seconds=20):
    """Work until every event has ended."""

    def is_done():
        inbox.work()
        return not inbox.rows(OPEN)

    until(is_done, seconds=seconds)


def results(inbox):
    """Return status and result of each run by its event's id."""
    return {
        event: (status, result)
        for event, status, result in inbox.rows(
            "SELECT e.event_id, r.status, r.result FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event"
            " WHERE r.handler = 'forwards.out'"
        )
    }


def errors(inbox):
    """Return the last error of each run by its event's id."""
    return dict(
        inbox.rows(
            "SELECT e.event_id, f.error FROM hookonce.failures f JOIN hookonce.events e ON e.id = f.event ORDER BY f.id"
        )
    )
