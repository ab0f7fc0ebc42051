"""Sources that a configuration describes, the receiver in this process, and a worker that works when it is told to."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.database import connections
from tests.support.senders import SIGNING as SECRET

HMAC = 'hmac = { header = "X-Sig", id = "$.id", type = "$.type", account = "header:X-Account" }'


class Sources:
    """The application with one source, `shop`, of a sender that signs with HMAC; `options` are lines of its table."""

    def __init__(self, database_url, redis_url, directory, options="", *, provider="hmac", top="", **environ):
        path = directory / "hookonce.toml"
        table = HMAC if provider == "hmac" else ""
        secret = 'secrets = ["env:SHOP_SECRET"]'
        path.write_text(f'{top}\n[sources.shop]\nprovider = "{provider}"\n{secret}\n{options}\n{table}\n')
        self.settings = load_settings(
            {
                "HOOKONCE_CONFIG": str(path),
                "DATABASE_URL": database_url,
                "REDIS_URL": redis_url,
                "SHOP_SECRET": SECRET,
            }
            | environ
        )
        self.app = create_app(self.settings)
        self.ledger = connections.connect(database_url)
        self.registry = Registry()
        self._drain = None

    @property
    def source(self):
        return self.settings.sources["shop"]

    @property
    def intake(self):
        return self.app.extensions["hookonce"]

    def send(self, body, *, event_id="evt", **headers):
        """Send a delivery that is genuine."""
        whole = body if isinstance(body, bytes) else json.dumps(body).encode()
        provider = self.source.provider
        made = provider.delivery(whole, SECRET, datetime.now(UTC), event_id=event_id)
        sent = dict(made.headers) | {name.replace("_", "-").lower(): value for name, value in headers.items()}
        return self.app.test_client(use_cookies=False).post("/hooks/shop", data=made.body, headers=sent)

    def status(self, body, **headers):
        return self.send(body, **headers).json["status"]

    def on(self, function, **changes):
        options = {"attempts": 2, "backoff": (timedelta(0), timedelta(0)), "timeout": timedelta(seconds=5)}
        self.registry.add(Handler(function.__name__, "shop", "*", function, **(options | changes)))

    def work(self):
        if self._drain is None:
            self._drain = SingleSlot(self.settings, self.registry)
        return self._drain.run_due()

    def rows(self, query, *values):
        return self.ledger.execute(query, values or None).fetchall()

    @property
    def ids(self):
        return [row[0] for row in self.rows("SELECT event_id FROM hookonce.event_states ORDER BY id")]

    def close(self):
        if self._drain is not None:
            self._drain.close()
        self.intake.close()
        self.ledger.close()


@pytest.fixture
def open_sources(database_url, redis_url, tmp_path):
    """A function: the application with a source that has these options."""
    made = []

    def make(options="", **changes):
        made.append(Sources(database_url, changes.pop("redis_url", redis_url), tmp_path, options, **changes))
        return made[-1]

    yield make
    for each in reversed(made):
        each.close()
