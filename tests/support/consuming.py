"""A consumer in a thread of the test's process, and what its ledger holds."""

import asyncio
import json
import threading
from datetime import UTC, datetime

from hookonce.providers.kit.registry import load
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.intake.consumers import consume
from hookonce.receiver.ledger.database import connections

SECRET = "a secret of the sender"


class Consuming:
    """A consumer in a thread of this process, and its ledger."""

    def __init__(self, urls, directory, place, extra="", provider="stripe", authenticity="queue"):
        file = directory / "hookonce.toml"
        file.write_text(
            f'[sources.orders]\nprovider = "{provider}"\nfrom = "env:PLACE"\nauthenticity = "{authenticity}"\n{extra}'
        )
        database_url, redis_url = urls
        self.environ = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "HOOKONCE_CONFIG": str(file)}
        self.settings = load_settings(self.environ | {"PLACE": place, "SECRET": SECRET})
        self.connection = connections.connect(database_url)

    def __enter__(self):
        self._thread = threading.Thread(target=lambda: asyncio.run(self._consume()))
        self._loop = None
        self._thread.start()
        return self

    async def _consume(self):
        self._stopping, self._loop = asyncio.Event(), asyncio.get_running_loop()
        await consume(self.settings, self.settings.sources, self._stopping)

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self.connection.close()

    def events(self):
        """Return the events: (id, type, status)."""
        rows = self.connection.execute("SELECT event_id, type, status FROM hookonce.event_states ORDER BY id")
        return rows.fetchall()

    def errors(self):
        rows = self.connection.execute("SELECT error FROM hookonce.failures ORDER BY id")
        return [row[0] for row in rows]


def stripe_event(number):
    return json.dumps({"id": f"evt_{number}", "object": "event", "type": "invoice.paid"}).encode()


def signed(body):
    return load("stripe").sign(body, SECRET, datetime.now(UTC))
