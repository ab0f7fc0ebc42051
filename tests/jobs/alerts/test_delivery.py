import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hookonce.jobs.alerts import delivery as alert_delivery
from hookonce.jobs.handlers import Registry
from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.alerts import Alerts
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger.store import store
from hookonce.receiver.monitoring import alert_events

SECRET = "whsec_YWxlcnRzLW9mLXRoZS10ZXN0cw"


class Pager(HTTPServer):
    """Takes alerts; answers with the codes it is told, 200 after that."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Taking)
        self.taken, self.codes = [], []
        self.url = f"http://127.0.0.1:{self.server_port}/in?key=hidden"


class Taking(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.taken.append(Delivery("POST", self.path, headers, body))
        self.send_response(self.server.codes.pop(0) if self.server.codes else 200)
        self.send_header("location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def pager():
    with Pager() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def alerted(inbox, pager):
    """Stores a test alert for a worker that delivers to the pager."""
    settings = Alerts(urls=(pager.url,), secret=SECRET)
    alert_delivery.register(inbox.registry, settings)

    def alert():
        event = alert_events.test_event(datetime.now(UTC))
        return store(inbox.connection, [event])[event.key].id

    return alert


def test_alert_arrives_signed_as_standard_webhooks_say(inbox, pager, alerted):
    alerted()

    inbox.work()

    (delivery,) = pager.taken
    provider = load("standard_webhooks", (), None)
    provider.verify(delivery, [SECRET], datetime.now(UTC))
    (event,) = provider.events(delivery)
    assert (event.type, event.id[:11]) == ("alert.test", "alert_test_")


@pytest.mark.parametrize(("code", "status"), [(500, "waiting"), (302, "waiting"), (410, "dead")])
def test_alert_that_is_not_taken_is_tried_again_unless_gone(inbox, pager, alerted, code, status):
    pager.codes = [code]
    alerted()

    inbox.work()

    assert inbox.rows("SELECT status FROM hookonce.run_states") == [(status,)]
    assert "hidden" not in inbox.rows("SELECT error FROM hookonce.failures")[0][0]
    assert len(pager.taken) == 1


def test_alert_keeps_its_id_on_every_attempt(inbox, pager, alerted):
    pager.codes = [503]
    alerted()
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
    inbox.work()

    first, second = pager.taken
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert inbox.rows("SELECT status FROM hookonce.run_states") == [("done",)]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (Alerts(urls=("https://a.example",), secret=""), "secret"),
        (Alerts(urls=("https://a.example",), secret="whsec_?"), "secret"),
        (Alerts(urls=("",), secret=SECRET), "urls"),
    ],
)
def test_worker_that_can_not_send_alerts_says_so_at_its_start(settings, complaint):
    with pytest.raises(ConfigError, match=complaint) as caught:
        alert_delivery.register(Registry(), settings)

    assert "whsec_?" not in str(caught.value)


def test_alerts_have_a_handler_for_each_url():
    registry = Registry()
    urls = ("https://a.example/1", "https://a.example/2", "https://a.example/1")

    alert_delivery.register(registry, Alerts(urls=urls, secret=SECRET))

    assert len(registry.matching("hookonce", "hookonce", "alert.raised")) == 2
    assert max(handler.timeout for handler in registry) > timedelta(seconds=sum(alert_delivery.TIMEOUT))
