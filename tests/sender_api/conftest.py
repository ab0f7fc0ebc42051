from datetime import timedelta

import pytest

from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.intake.sender_api.rounds import Rounds
from hookonce.receiver.ledger.database import connections
from tests.support.fake_senders import Clock, means_of
from tests.support.in_process import Receiver


class World:
    """An inbox with a receiver, and senders on loopback that it asks."""

    def __init__(self, database_url, redis_url, path):
        self.clock = Clock()
        self.urls = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        self.path = path
        self.receiver = Receiver(database_url, redis_url)
        self.connection = connections.connect(database_url)
        self.servers = []
        self.is_plugged = True
        self.rounds = None

    def configure(self, toml, **environ):
        """Have the sources of a configuration, and rounds that ask their senders."""
        file = self.path / "hookonce.toml"
        file.write_text('[receiver]\npublic_url = "https://hooks.example.com"\n' + toml)
        self.environ = {**self.urls, "HOOKONCE_CONFIG": str(file), **environ}
        self.settings = load_settings(self.environ, need_secrets=False)
        self.receiver.sources.clear()
        self.receiver.sources.update(self.settings.sources)
        self.rounds = self.new_rounds()

    def new_rounds(self):
        ports = {server.host: server.port for server in self.servers}
        return Rounds(self.settings, means_of(ports, self.clock, self.environ), timedelta(seconds=1))

    def serve(self, made):
        self.servers.append(made)
        return made

    def deliver(self, source, body, name, kind):
        """Deliver an event to the front door, if that is plugged in; return what it answers."""
        if not self.is_plugged:
            return 502
        provider = self.settings.sources[source].provider
        delivery = provider.delivery(body, "whsec_test", self.receiver.now, event_id=name, type=kind)
        return self.receiver.send(source, delivery).status_code

    def turn(self):
        self.rounds.turn(self.connection)

    def pass_time(self, span, step=timedelta(minutes=1)):
        """Take turns for as long as a span lasts."""
        until = self.clock() + span
        while self.clock() < until:
            self.turn()
            self.clock.sleep(step.total_seconds())

    def rows(self, query, *values):
        return self.connection.execute(query, values or None).fetchall()

    def ids(self):
        return {name for (name,) in self.rows("SELECT event_id FROM hookonce.events")}

    def missing(self):
        return {name for (name,) in self.rows("SELECT event_id FROM hookonce.missing_events")}

    def listing(self):
        [row] = self.rows("SELECT problem, gap, checked_until FROM hookonce.listings")
        return row

    def close(self):
        for each in self.servers:
            each.close()
        if self.rounds:
            self.rounds.close()
        self.connection.close()
        self.receiver.close()


@pytest.fixture
def world(database_url, redis_url, tmp_path):
    made = World(database_url, redis_url, tmp_path)
    yield made
    made.close()
