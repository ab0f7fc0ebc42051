"""A receiver in this process, with sources and a clock that tests choose."""

from datetime import UTC, datetime

from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.source import Source

PUBLIC_URL = "https://hooks.example.com"


class Receiver:
    """The whole application; `sources` and `now` may be changed at any time."""

    def __init__(self, database_url, redis_url, **changes):
        self.sources = {}
        self.now = datetime.now(UTC)
        self.database_url = database_url
        self.settings = Settings(database_url, redis_url, self.sources, **{"desk": "door", **changes})
        self.app = create_app(self.settings, lambda: self.now)
        self._client = self.app.test_client(use_cookies=False)

    def add(self, name, provider, *secrets, **options):
        self.sources[name] = Source(name, provider, secrets, public_url=PUBLIC_URL, **options)

    def send(self, name, delivery):
        """Send a delivery to a source, whatever URL it was captured at."""
        _, mark, query = delivery.url.partition("?")
        path = f"/hooks/{name}" + (f"/{delivery.path_secret}" if delivery.path_secret else "") + mark + query
        return self._client.open(
            path, method=delivery.method, headers=dict(delivery.headers), data=delivery.body
        )

    def query(self, statement, *values):
        with connections.connect(self.database_url) as connection:
            return connection.execute(statement, values or None).fetchall()

    def close(self):
        self.app.extensions["hookonce"].close()
